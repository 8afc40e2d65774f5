"""A document against its JSON Schema: all faults, in our words.

jsonschema finds them; its sentences quote values, and a value may be a secret, so every sentence here is our own.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Protocol, cast

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from agent.wire import names
from agent.wire.rules import Fault
from agent.wire.schema import manifest_schema

MAX_FAULTS = 100
SHOWN_CHARS = 60

_TYPES = {
    "object": "an object",
    "array": "a list",
    "string": "text",
    "boolean": "a boolean, true or false",
    "integer": "a whole number",
}
#: What a grammar allows, for people.
_GRAMMARS = {
    names.DNS_LABEL: "1 to 63 lower-case letters, digits and -, beginning and ending with a letter or digit",
    names.DNS_SUBDOMAIN: "lower-case letters, digits, - and ., each part beginning and ending with a letter or digit",
    names.LABEL_KEY: "a Kubernetes label key: optional DNS prefix and /, then up to 63 letters, digits, -, _ and .",
    names.LABEL_VALUE: "a Kubernetes label value: up to 63 letters, digits, -, _ and .",
    names.CONTAINER_NAME: "up to 63 letters, digits, _, . and -, beginning with a letter or digit",
    names.ENV_NAME: "letters, digits and _, not beginning with a digit",
    names.SECRET_PART: "up to 63 letters, digits, _, - and ., not beginning with a dot",
    names.IMAGE_REFERENCE: "an image with a tag or a digest, such as registry.example.com/app:1.0",
    names.ABSOLUTE_PATH: "an absolute path without .. and :",
    names.RESTART_POLICY: "no, on-failure, on-failure:N, always, unless-stopped",
    names.PORT_MAPPING: "[ip:]host:container[/tcp|udp], numbers or ranges",
    names.VERSION: "a version such as 1.4.0 or 1.4.0-rc1",
    names.SHA256: "64 hexadecimal digits, lower-case",
}
#: A key that names an executor by its form, such as ``shellV1``.
_EXECUTOR = re.compile(r"[A-Za-z0-9]+V[0-9]+")
#: What is said of a missing field beside that it is missing.
_MISSING = {"systemUpgradeV1": "is missing: a task run names exactly one executor; there is: systemUpgradeV1: {}"}
#: Words by which other systems steer a rollout; here nothing of the kind exists (DEP-8).
_STEERING = (
    "percent",
    "batch",
    "concurren",
    "parallel",
    "pause",
    "approv",
    "unavailable",
    "surge",
    "canar",
    "step",
    "max",
)


class Mismatch(Protocol):
    """What jsonschema says of one fault, as far as we read it."""

    instance: Any
    schema: dict[str, Any]
    validator: str
    validator_value: Any
    context: Sequence[Mismatch]
    schema_path: Sequence[str | int]
    absolute_path: Sequence[str | int]
    absolute_schema_path: Collection[str | int]


def check(document: dict[str, Any], kind: str) -> list[Fault]:
    """The faults of a document's shape, in the order of the text's paths; at most 100 are told."""
    errors = _leaves(cast("Iterable[Mismatch]", _validator(kind).iter_errors(document)))
    return capped(fault for error in errors for fault in _explain(error))


def capped(faults: Iterable[Fault]) -> list[Fault]:
    """The first faults, each once, and a word when there are more; no more are even looked for."""
    told: dict[Fault, None] = {}
    for fault in faults:
        if len(told) == MAX_FAULTS:
            return [*told, Fault("", f"and more; mend these {MAX_FAULTS} faults first")]
        told[fault] = None
    return list(told)


def _whole(_validator: Validator, pattern: str, text: Any, _schema: Any) -> Iterator[ValidationError]:
    """``pattern`` for texts as a whole: Python's ``$`` also fits before a line break at the end."""
    if isinstance(text, str) and not names.fits(pattern, text):
        yield ValidationError("does not fit")


_Strict = extend(Draft202012Validator, {"pattern": _whole})  # type: ignore[no-untyped-call]


@cache
def _validator(kind: str) -> Validator:
    return cast("Validator", _Strict(manifest_schema(kind)))


def _leaves(errors: Iterable[Mismatch]) -> Iterator[Mismatch]:
    """Look through ``X or null``: the faults are those against X."""
    for error in errors:
        if error.validator == "anyOf" and error.context:
            branch = [each for each in error.context if each.schema_path[0] == 0]
            yield from _leaves(branch)
        else:
            yield error


def _explain(error: Mismatch) -> Iterator[Fault]:
    path = _path(error)
    explain = _WORDS.get(error.validator, _anything_else)
    yield from explain(error, path)


def _unknown(error: Mismatch, path: str) -> Iterator[Fault]:
    allowed = list(error.schema.get("properties", {}))
    for name in error.instance:
        if name not in allowed:
            yield Fault(_join(path, name), _unknown_message(name, path, allowed))


def _unknown_message(name: str, path: str, allowed: list[str]) -> str:
    is_run = "systemUpgradeV1" in allowed
    if path in ("spec.systemUpgradeV1", "spec.template.systemUpgradeV1"):
        return (
            "is not taken: the upgrade is fixed, so callers cannot supply packages, repositories, commands or reboot "
            "arguments; allowed: systemUpgradeV1: {}"
        )
    if is_run and _EXECUTOR.fullmatch(name):
        return "is no executor that exists; allowed: systemUpgradeV1"
    if path == "spec.rollout" or (path == "spec" and any(word in name.lower() for word in _STEERING)):
        return (
            "does not exist: a rollout has no percentage, batch, concurrency, pause or approval setting; "
            "rollout has only: strategy (Immediate)"
        )
    near = difflib.get_close_matches(name, allowed, n=1, cutoff=0.6)
    if near:
        return f'unknown field; did you mean "{near[0]}"?'
    return f"unknown field; allowed: {', '.join(allowed)}"


def _missing(error: Mismatch, path: str) -> Iterator[Fault]:
    for name in error.validator_value:
        if name not in error.instance:
            yield Fault(_join(path, name), _MISSING.get(name, "is missing"))


def _type(error: Mismatch, path: str) -> Iterator[Fault]:
    """Never the value itself: what stands at a wrong place may be the value of an ``env`` (DEP-2)."""
    wanted = _TYPES.get(str(error.validator_value), str(error.validator_value))
    hint = _quote_hint(error.instance) if error.validator_value == "string" else ""
    yield Fault(path, f"found {type_name(error.instance)}; allowed: {wanted}{hint}")


def _quote_hint(value: Any) -> str:
    if isinstance(value, bool):
        return ' (YAML reads an unquoted yes, no, on or off as a boolean; quote it, such as "no")'
    if isinstance(value, int | float):
        return " (YAML reads an unquoted number, or a port mapping such as 22:22, as a number; quote it)"
    return ""


def _choice(error: Mismatch, path: str) -> Iterator[Fault]:
    allowed = ", ".join(str(each) for each in error.validator_value)
    yield Fault(path, f"found {shown(error.instance)}; allowed: {allowed}")


def _grammar(error: Mismatch, path: str) -> Iterator[Fault]:
    allowed = _GRAMMARS.get(error.validator_value, "another form")
    found = error.instance
    if error.validator_value == names.ENV_NAME and "=" in found:
        found = f"{found.partition('=')[0]}=…"  # who writes NAME=value as the name shall not see the value again
    yield Fault(path, f"found {shown(found)}; allowed: {allowed}")


def _too_long(error: Mismatch, path: str) -> Iterator[Fault]:
    yield Fault(path, f"has {len(error.instance)} characters; allowed: {error.validator_value}")


def _too_many(error: Mismatch, path: str) -> Iterator[Fault]:
    yield Fault(path, f"has {len(error.instance)} entries; allowed: {error.validator_value}")


def _too_few(error: Mismatch, path: str) -> Iterator[Fault]:
    found = "no entry" if not error.instance else f"{len(error.instance)} entries"
    yield Fault(path, f"has {found}; needed: at least {error.validator_value}")


def _range(error: Mismatch, path: str) -> Iterator[Fault]:
    """A number out of its range; both ends are told, whichever was passed."""
    if isinstance(error.instance, int):  # a fraction is refused already
        lowest, highest = error.schema.get("minimum"), error.schema.get("maximum")
        yield Fault(path, f"found {error.instance}; allowed: {lowest} to {highest}")


def _anything_else(error: Mismatch, path: str) -> Iterator[Fault]:
    yield Fault(path, f"does not fit ({error.validator})")


_WORDS: dict[str, Callable[[Mismatch, str], Iterator[Fault]]] = {
    "additionalProperties": _unknown,
    "required": _missing,
    "type": _type,
    "enum": _choice,
    "pattern": _grammar,
    "maxLength": _too_long,
    "maxItems": _too_many,
    "maxProperties": _too_many,
    "minItems": _too_few,
    "minimum": _range,
    "maximum": _range,
}


def _path(error: Mismatch) -> str:
    path = ""
    for part in error.absolute_path:
        path = f"{path}[{part}]" if isinstance(part, int) else _join(path, str(part))
    if "propertyNames" in error.absolute_schema_path:
        path = _join(path, str(error.instance))
    return path


def _join(path: str, name: str) -> str:
    shown_name = name if names.fits(r"[A-Za-z0-9_./-]{1,80}", name) else shown(name)
    return f"{path}.{shown_name}" if path else shown_name


def type_name(value: Any) -> str:
    """What a person calls the type of a value."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else "text"


def shown(value: Any) -> str:
    """A short text as it was written, quoted; of anything else its type."""
    if not isinstance(value, str):
        return type_name(value)
    cut = value if len(value) <= SHOWN_CHARS else value[:SHOWN_CHARS] + "…"
    escaped = "".join(mark if mark.isprintable() else f"\\u{ord(mark):04x}" for mark in cut)
    return f'"{escaped}"'
