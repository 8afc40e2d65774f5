"""JSON Schemas of the manifests, generated from their types: for the door, OpenAPI and the CRDs."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from agent.wire.manifest import KINDS

REF_TEMPLATE = "#/$defs/{name}"


@cache
def manifest_schema(kind: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of one kind, with ``$defs``.

    Raises:
        KeyError: when there is no such kind.
    """
    (schema,), definitions = msgspec.json.schema_components([KINDS[kind]], ref_template=REF_TEMPLATE)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "$defs": definitions}
