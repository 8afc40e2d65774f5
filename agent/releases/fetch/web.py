"""One file from a web server, going on where an earlier try was cut off."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import requests

from agent.releases.fetch.client import Client, place, require
from agent.releases.fetch.errors import FetchError
from agent.releases.fetch.partial import Partial

_CHUNK = 65_536
_OK, _PARTIAL, _NOT_SATISFIABLE = 200, 206, 416
_RANGE = re.compile(r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18})")

#: Told now and then: bytes that are there, and of how many (0: unknown).
Progress = Callable[[int, int], None]


def fetch(client: Client, url: str, partial: Partial, most: int, progress: Progress) -> None:
    """Bring the whole of it, at most ``most`` bytes, into the file; one try.

    Raises:
        FetchError: it is not whole; what came so far stays for the next try when that may go on from there.
    """
    with client.get(url, _range(partial)) as response:
        if response.status_code == _NOT_SATISFIABLE and partial.size:
            return  # all of it is there already, or too much of it: its digest tells
        require(response, url, (_OK, _PARTIAL))
        start = _start(response, url, partial)
        total = _total(response, url, start)
        if total > most:
            raise FetchError(f"{place(url)} has {total:,} bytes, more than its maxSize of {most:,}")
        partial.append(_told(_pieces(response), progress, start, total), most)
    if partial.size < total:  # servers may answer a range with less of it
        raise FetchError(f"{place(url)} sent a part only", is_temporary=True)


def _range(partial: Partial) -> dict[str, str]:
    if not partial.size:
        return {}
    condition = {"If-Range": partial.validator} if partial.validator else {}
    return {"Range": f"bytes={partial.size}-", **condition}


def _start(response: requests.Response, url: str, partial: Partial) -> int:
    """Where the body goes: a server without ranges, or with another version by now, sends it from the beginning."""
    if response.status_code == _OK:
        partial.start_over(_validator(response))
        return 0
    found = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if found is None or int(found[1]) != partial.size:
        partial.remove()
        raise FetchError(f"{place(url)} sent another part than was asked for", is_temporary=True)
    return int(found[1])


def _total(response: requests.Response, url: str, start: int) -> int:
    """Of the whole file; no more than ``start`` when the server does not say."""
    part = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if response.status_code == _PARTIAL and part:
        return int(part[2])
    length = response.headers.get("Content-Length") or "0"
    if not re.fullmatch("[0-9]{1,18}", length):
        raise FetchError(f"{place(url)} answered with a Content-Length that is no number")
    return start + int(length)


def _validator(response: requests.Response) -> str:
    """A weak ETag may stand for other bytes, so that it can't be used for this."""
    tag = str(response.headers.get("ETag", ""))
    return tag if tag and not tag.startswith("W/") else str(response.headers.get("Last-Modified", ""))


def _pieces(response: requests.Response) -> Iterator[bytes]:
    """As they are on the wire: an archive that is called gzip is not unpacked here."""
    while piece := response.raw.read(_CHUNK, decode_content=False):
        yield piece


def _told(pieces: Iterator[bytes], progress: Progress, start: int, total: int) -> Iterator[bytes]:
    there = start
    for piece in pieces:
        there += len(piece)
        progress(there, total if total > start else 0)
        yield piece
