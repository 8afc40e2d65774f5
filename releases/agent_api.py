"""What a device fetches: an archive by its digest, from wherever it was cut off (UPG-3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, cast

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from devices.agent_views import agent_view, device_of
from fleet.core.errors import NotFound
from releases.models import ShelvedRelease
from releases.selectors import release_of

_CHUNK = 262_144
_RANGE = re.compile(r"bytes=(\d{1,19})-(\d{1,19})?")


@agent_view("GET")
def archive(request: HttpRequest, sha256: str) -> HttpResponse:
    """The archive, or the part of it that is asked for; the digest is its ETag, so a part is always of the same."""
    device_of(request)
    release = release_of(sha256)
    if not release.file:
        raise NotFound(f"release {release} does not lie here but at {release.url}")
    etag, size = f'"{release.sha256}"', release.size
    asked = request.META.get("HTTP_RANGE", "")
    part = _part(asked, size) if request.META.get("HTTP_IF_RANGE", etag) == etag else None
    if part is not None and not part:
        response: HttpResponseBase = HttpResponse(status=416)
        response["Content-Range"] = f"bytes */{size}"
    else:
        span = part or range(size)
        response = StreamingHttpResponse(_pieces(_opened(release), span), status=206 if part else 200)
        response["Content-Length"] = str(len(span))
        if part:
            response["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{size}"
    response["Content-Type"] = "application/gzip"
    response["Accept-Ranges"] = "bytes"
    response["ETag"] = etag
    response["Cache-Control"] = "private, max-age=31536000, immutable"
    return cast("HttpResponse", response)  # the views for devices know no other kind


def _opened(release: ShelvedRelease) -> IO[bytes]:
    try:
        return cast("IO[bytes]", release.file.open("rb"))
    except FileNotFoundError:  # as after a backup that had the database alone
        raise NotFound(
            f"the archive of release {release} is gone from the control plane; it has to be added again"
        ) from None


def _part(asked: str, size: int) -> range | None:
    """The bytes of a single range; empty when it lies outside, None for what is no such range: then all are sent."""
    found = _RANGE.fullmatch(asked)
    if found is None:
        return None
    start, end = int(found[1]), min(int(found[2] or size - 1), size - 1)
    return range(start, end + 1) if start <= end else range(0)


def _pieces(file: IO[bytes], span: range) -> Iterator[bytes]:
    with file:
        file.seek(span.start)
        left = len(span)
        while left and (piece := file.read(min(_CHUNK, left))):
            left -= len(piece)
            yield piece
