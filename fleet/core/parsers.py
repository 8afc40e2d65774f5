"""Bodies of requests, read with limits: what is too large or too deep is a refusal, never an error of ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from fleet.core.errors import TooLarge

#: The door's limit for a text with manifests; no other body needs more.
MAX_BYTES = 1_048_576


def _limited(stream: IO[bytes]) -> bytes:
    data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise TooLarge(f"the body has more than {MAX_BYTES} bytes; allowed: {MAX_BYTES}; nothing was changed")
    return data


class JsonObject(BaseParser):
    """JSON whose outermost value is an object."""

    media_type = "application/json"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The object.

        Raises:
            ParseError: when it is not JSON, not an object, or has a key twice.
            TooLarge: above one MiB.
        """
        data = _limited(stream)
        try:
            found = json.loads(data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_number)
        except RecursionError:
            raise ParseError("the JSON text is nested too deeply") from None
        except ValueError as error:
            raise ParseError(f"the body is not JSON: {error}") from None
        if not isinstance(found, dict):
            raise ParseError("the body is not a JSON object")
        return found


class ManifestText(BaseParser):
    """YAML or JSON as the bytes that came; the door reads them (``fleet.core.door``)."""

    media_type = "application/yaml"

    def parse(  # type: ignore[override]  # whatever a parser returns becomes request.data
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> bytes:
        """The bytes.

        Raises:
            TooLarge: above one MiB.
        """
        return _limited(stream)


class JsonManifestText(ManifestText):
    media_type = "application/json"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice[:80]!r} comes a second time in one object")
    return found


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is not JSON")
