"""Where a release's archive may be fetched from (UPG-1). Pure."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

ALLOWED = "allowed: https://, oci://, and http:// to this device alone (127.0.0.0/8, ::1, localhost)"
#: ``oci://registry[:port]/repository:tag`` or ``@sha256:digest``, as registries write references.
_OCI_PATH = re.compile(
    r"/[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}|@sha256:[a-f0-9]{64})"
)
_SPACE_OR_CONTROL = re.compile(r"[\x00-\x20\x7f-\U0010ffff\\\\]")


def url_problem(url: str) -> str:
    """What is wrong with an artifact's address, in words that follow its name; empty when nothing is."""
    if _SPACE_OR_CONTROL.search(url):
        return f"has a character that no address may hold; {ALLOWED}"
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (raises when it is none)
    except ValueError:
        return f"is no address; {ALLOWED}"
    return _origin_problem(parts) or (_oci_problem(parts) if parts.scheme == "oci" else "")


def _origin_problem(parts: SplitResult) -> str:
    host = parts.hostname or ""
    if parts.scheme not in ("https", "http", "oci") or not host:
        return f"has the scheme {parts.scheme or 'none'!r} and the host {host or 'none'!r}; {ALLOWED}"
    if parts.username is not None or parts.password is not None:
        return "holds a user name or password, which would be shown to everybody who reads it; leave it out"
    if parts.fragment:
        return "has a fragment (#…), which no server ever sees; leave it out"
    if parts.scheme == "http" and not is_loopback(host):
        return f"is http:// to {host}, which anybody on the way can change; {ALLOWED}"
    return ""


def _oci_problem(parts: SplitResult) -> str:
    if parts.query or not _OCI_PATH.fullmatch(parts.path):
        return "is no reference; allowed: oci://registry/repository:tag or oci://registry/repository@sha256:digest"
    return ""


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its address or its well-known name; no name is looked up."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
