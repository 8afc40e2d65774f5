"""Grammars of the names that cross the wire, as anchored regular expressions.

They are strings, not compiled patterns, because the JSON Schema of the manifests quotes them. ``\\Z`` is unknown to
JSON Schema; the patterns end in ``$``, and whoever applies one asks :func:`fits`, which takes no line break after it.
"""

from __future__ import annotations

import re

#: RFC 1123 label: device ids (DEV-1), namespaces.
DNS_LABEL = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
#: RFC 1123 subdomain: object names, as Kubernetes has them.
DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
#: Kubernetes label key: optional DNS prefix, a slash, then a name of at most 63 characters.
LABEL_KEY = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
#: Kubernetes label value: empty, or at most 63 characters that begin and end alphanumerically.
LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"
#: Podman's container name grammar, cut at 63 characters (DEP-3).
CONTAINER_NAME = r"^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$"
#: Environment variable names as POSIX shells and Podman take them.
ENV_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,254}$"
#: One file name below the device's secret directory; no dot first, so neither ``..`` nor hidden files.
SECRET_PART = r"^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,62}$"  # noqa: S105  (a grammar)
#: Image reference: [registry[:port]/]path[:tag][@sha256:digest]; a tag or a digest is required (DEP-3).
IMAGE_REFERENCE = (
    r"^([a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]{1,5})?/)?"
    r"[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[a-f0-9]{64})?|@sha256:[a-f0-9]{64})$"
)
#: Absolute path without NUL, colon (Podman's separator) or a ``..`` segment.
ABSOLUTE_PATH = r"^/(?!\.\.(/|$))(?!.*/\.\.(/|$))[^\x00-\x1f:]*$"
#: ``no``, ``on-failure`` with an optional count, ``always``, ``unless-stopped`` (DEP-3).
RESTART_POLICY = r"^(no|on-failure(:[1-9][0-9]{0,3})?|always|unless-stopped)$"
#: ``[ip:]host:container[/tcp|udp]``; numbers and ranges are checked by :mod:`agent.wire.ports`.
PORT_MAPPING = r"^((\[[0-9a-fA-F:.]+\]|[0-9.]+):)?[0-9]{1,5}(-[0-9]{1,5})?:[0-9]{1,5}(-[0-9]{1,5})?(/(tcp|udp))?$"

#: A release's version, which is a folder's name on the device too; no dots alone, no slash.
VERSION = r"^[0-9]{1,6}\.[0-9]{1,6}\.[0-9]{1,6}([a-z0-9.+-]{0,32})$"
#: The SHA-256 of a file, in lower case.
SHA256 = r"^[0-9a-f]{64}$"

#: Labels that only the control plane may set on a device (TSK-1).
DEVICE_ID_LABEL = "device-id"
CANARY_LABEL = "canary"
RESERVED_LABELS = frozenset({DEVICE_ID_LABEL, CANARY_LABEL})


def fits(pattern: str, text: str) -> bool:
    """Whether the whole text has the grammar; unlike ``re.match`` with ``$``, refuses a trailing newline."""
    return re.fullmatch(pattern, text) is not None
