"""From the JSON Schema of our types to what API servers call structural.

Structural schemas know no ``$ref``, no null union and no ``additionalProperties: false``. Unknown fields are kept
instead of pruned (K8S-7): what nobody knows has to be refused with a word, not emptied in silence.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from agent.wire import names

Schema = dict[str, Any]

KEEP_UNKNOWN = {"x-kubernetes-preserve-unknown-fields": True}
_REFERENCE = "#/$defs/{name}"
#: API servers match with RE2, which cannot look ahead; the rest is said by the control plane.
_WITHOUT_LOOKAHEAD = {names.ABSOLUTE_PATH: r"^/[^\x00-\x1f:]*$"}
#: Taken over as they are.
_PLAIN = (
    "type",
    "enum",
    "format",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
)
_RST_ROLE = re.compile(r":[a-z]+:`~?([^`]+)`")
_CLAUSES = re.compile(r" \([A-Z0-9]{3}-\d+[^)]*\)")


def structural(of: type) -> Schema:
    """The structural schema of a msgspec type."""
    (schema,), definitions = msgspec.json.schema_components([of], ref_template=_REFERENCE)
    return _converted(schema, definitions)


def _converted(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    if "$ref" in schema:
        return _converted(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return _or_null(schema["anyOf"], definitions)
    converted: Schema = {key: schema[key] for key in _PLAIN if schema.get(key, []) != []}
    if description := _for_people(schema.get("description", "")):
        converted["description"] = description
    if "enum" in schema:
        converted["type"] = "string"
    if "pattern" in schema:
        converted["pattern"] = _WITHOUT_LOOKAHEAD.get(schema["pattern"], schema["pattern"])
    if "items" in schema:
        converted["items"] = _converted(schema["items"], definitions)
    if schema.get("type") == "object":
        converted |= _object(schema, definitions)
    return converted


def _or_null(branches: list[Schema], definitions: dict[str, Schema]) -> Schema:
    (branch,) = [each for each in branches if each.get("type") != "null"]
    return {**_converted(branch, definitions), "nullable": True}


def _object(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """A map has a schema for its values; anything else has properties, and keeps what it does not know."""
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        return {"additionalProperties": _converted(values, definitions)}
    properties = {name: _converted(inner, definitions) for name, inner in schema.get("properties", {}).items()}
    return {**({"properties": properties} if properties else {}), **KEEP_UNKNOWN}


def _for_people(docstring: str) -> str:
    """What ``kubectl explain`` shows: the docstring without the mark-up and references of developers."""
    text = _CLAUSES.sub("", _RST_ROLE.sub(r"\1", docstring)).replace("``", "")
    return " ".join(text.split())
