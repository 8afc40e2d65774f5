"""Where an archive may be fetched from (UPG-1)."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.wire.artifacts import is_loopback, url_problem

pytestmark = pytest.mark.clause("UPG-1")

DIGEST = "a" * 64


@pytest.mark.parametrize(
    "url",
    [
        "https://files.example.com/agent.tar.gz",
        "https://files.example.com:8443/agent?version=2&signature=abc",
        "https://[2001:db8::1]/agent",
        "http://127.0.0.1:8000/agent",
        "http://[::1]/agent",
        "http://localhost/agent",
        "oci://registry.example.com:5000/fleet/agent:2.0.0-amd64",
        f"oci://registry.example.com/fleet/agent@sha256:{DIGEST}",
    ],
)
def test_may_be_fetched_from(url: str) -> None:
    assert not url_problem(url)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "has the scheme 'none' and the host 'none'"),
        ("file:///etc/shadow", "has the scheme 'file'"),
        ("ftp://files.example.com/a", "has the scheme 'ftp'"),
        ("https:///a", "and the host 'none'"),
        ("https://files.example.com:99999/a", "is no address"),
        ("https://[2001:db8::1/a", "is no address"),
        ("https://files.example.com/a b", "has a character"),
        ("https://files.example.com/a\r\nX-Header: b", "has a character"),
        ("https://files.example.com\\@evil.example/a", "has a character"),
        ("https://me:s3cret@files.example.com/a", "holds a user name or password"),
        ("https://files.example.com/a#b", "has a fragment"),
        ("http://files.example.com/a", "is http:// to files.example.com"),
        ("http://127.0.0.1.example.com/a", "is http:// to 127.0.0.1.example.com"),
        ("http://localhost.example.com/a", "is http:// to localhost.example.com"),
        ("oci://registry.example.com/fleet/agent", "is no reference"),
        ("oci://registry.example.com/fleet/agent:1?x=y", "is no reference"),
        ("oci://registry.example.com/../agent:1", "is no reference"),
        ("oci://registry.example.com/fleet/agent@sha256:abc", "is no reference"),
    ],
)
def test_may_not_be_fetched_from(url: str, why: str) -> None:
    problem = url_problem(url)
    assert why in problem
    assert "s3cret" not in problem


@given(st.sampled_from(["https://", "http://", "oci://", "file:", "//", ""]), st.text(max_size=40))
def test_whatever_is_taken_is_encrypted_or_stays_on_the_device(scheme: str, rest: str) -> None:
    if url_problem(url := scheme + rest):
        return
    parts = urlsplit(url)
    assert parts.scheme in ("https", "oci") or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    assert url.isascii()
    assert "@" not in parts.netloc
