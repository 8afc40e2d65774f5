"""OpenAPI's share that DRF does not know: the manifest's types, and how a refusal looks."""

from __future__ import annotations

from typing import Any

from agent.wire.manifest import KINDS
from agent.wire.schema import manifest_schema
from fleet.core.problems import CONTENT_TYPE

PREFIX = "Manifest"
_DEFINITIONS = "#/$defs/"
_COMPONENTS = "#/components/schemas/"
PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "Why the request was refused (RFC 9457).",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "format": "uri-reference"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What was found, what is allowed, what to do next."},
        "errors": {
            "type": "array",
            "description": "Every single fault, with where it is.",
            "items": {
                "type": "object",
                "required": ["path", "message"],
                "properties": {"path": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}


def manifest_component(name: str) -> dict[str, str]:
    """A reference to one of the manifest's types, which :func:`complete` puts among the components."""
    return {"$ref": f"{_COMPONENTS}{PREFIX}{name}"}


def complete(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """drf-spectacular's hook: the types of the wire are taken over as they are, so that they exist once."""
    components = result.setdefault("components", {}).setdefault("schemas", {})
    for kind in KINDS:
        for name, definition in manifest_schema(kind)["$defs"].items():
            components[f"{PREFIX}{name}"] = _renamed(definition)
    components["Problem"] = PROBLEM
    refusal = {
        "description": "Refused; the problem document says why.",
        "content": {CONTENT_TYPE: {"schema": {"$ref": f"{_COMPONENTS}Problem"}}},
    }
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"]["default"] = refusal
    return result


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: inner.replace(_DEFINITIONS, f"{_COMPONENTS}{PREFIX}") if key == "$ref" else _renamed(inner)
            for key, inner in value.items()
        }
    return [_renamed(inner) for inner in value] if isinstance(value, list) else value
