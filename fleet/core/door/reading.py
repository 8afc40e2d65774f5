"""YAML and JSON as plain data, with limits that no honest manifest comes near.

JSON is nearly YAML, but not quite: it may be indented with tabs and hold characters that YAML wants escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from typing import Any

import yaml

MAX_BYTES = 1_048_576
MAX_DEPTH = 32
MAX_NODES = 50_000
MAX_DOCUMENTS = 100
#: What YAML takes as an escape only, and the exotic line breaks that it would silently turn into spaces. Ordinary line
#: breaks and tabs are left to the grammar of each field.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")
_HALF = "half of a surrogate pair, which is no character"


class Unreadable(ValueError):
    """The text is no YAML or JSON that we take; ``path`` says where, as far as known."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


def documents(data: bytes) -> list[Any]:
    """The documents of a text.

    Raises:
        Unreadable: when it is too large, too deep, not UTF-8, not YAML, has a key twice, or uses anchors or tags.
    """
    if len(data) > MAX_BYTES:
        raise Unreadable(f"the text has {len(data)} bytes; allowed: {MAX_BYTES}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"the text is not UTF-8: byte {error.start} does not fit") from None
    try:
        found = _from_json(text) if text.lstrip()[:1] in ("{", "[") else _from_yaml(text)
    except RecursionError:
        raise Unreadable(f"the text is nested too deeply; allowed: {MAX_DEPTH} levels") from None
    if not found:
        raise Unreadable("the text has no manifest in it")
    return found


def _from_json(text: str) -> list[Any]:
    """One document; what only looks like JSON, such as ``{a: b}``, is left to YAML and its complaints."""
    try:
        document = json.loads(text, object_pairs_hook=_once)
    except Unreadable:
        raise
    except ValueError:
        return _from_yaml(text)
    _measure(document)
    return [document]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise Unreadable(f"the key {twice!r} comes a second time in one object")
    return found


def _measure(document: Any) -> None:
    """Hold JSON to the limits that :class:`_Loader` has for YAML."""
    level, nodes = [document], 0
    for _depth in range(MAX_DEPTH):
        if any(isinstance(each, str) and not _is_whole(each) for each in level):
            raise Unreadable(_HALF)
        nodes += len(level)
        if nodes > MAX_NODES:
            raise Unreadable(f"more than {MAX_NODES} values in one text")
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return
    raise Unreadable(f"the text is nested too deeply; allowed: {MAX_DEPTH} levels")


def _inside(value: Any) -> list[Any]:
    """Keys and values, as YAML counts them."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, list) else []


def _is_whole(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _from_yaml(text: str) -> list[Any]:
    if found := _CONTROL.search(text):
        raise Unreadable(
            f"line {text.count(chr(10), 0, found.start()) + 1} has the control character "
            f"U+{ord(found.group()):04X}; allowed: none (in double quotes, write it as an escape)"
        )
    try:
        return [each for each in yaml.load_all(text, Loader=_Loader) if each is not None]
    except yaml.MarkedYAMLError as error:
        raise Unreadable(_explain(error)) from None
    except yaml.YAMLError as error:
        raise Unreadable(f"the text is not YAML: {error}") from None
    except ValueError:  # from int(), which guards itself against thousands of digits
        raise Unreadable("a number has too many digits; quote it if it is text") from None


def _explain(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{where}{error.problem or error.context or 'not YAML'}"


class _Loader(yaml.SafeLoader):
    """A safe loader without anchors and tags, which counts what it builds and refuses a key that comes twice.

    The pure-Python loader on purpose: libyaml composes a whole document before anyone can count.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0
        self._nodes = 0
        self._documents = 0

    def compose_document(self) -> yaml.Node | None:
        self._documents += 1
        if self._documents > MAX_DOCUMENTS:
            raise yaml.MarkedYAMLError(problem=f"more than {MAX_DOCUMENTS} documents in one text")
        return super().compose_document()

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _refused("anchors and aliases are not taken; write the value out", event.start_mark)
        if getattr(event, "tag", None):
            raise _refused("tags are not taken; write a plain value", event.start_mark)
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise _refused(f"more than {MAX_NODES} values in one text", event.start_mark)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _refused(f"nested too deeply; allowed: {MAX_DEPTH} levels", event.start_mark)
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                raise _refused("a key is plain text; merges and nested keys are not taken", key.start_mark)
            if key.value in seen:
                raise _refused(f"the key {key.value!r} comes a second time in one object", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merges were refused before; nothing to flatten."""


def _refused(problem: str, mark: yaml.Mark) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def _text_key(loader: _Loader, node: yaml.MappingNode) -> dict[str, Any]:
    """A mapping whose keys are the text that was written: ``on:`` and ``1:`` are no booleans and numbers here."""
    loader.construct_mapping(node)
    return {_whole(key): loader.construct_object(value, deep=True) for key, value in node.value}


def _whole(node: yaml.ScalarNode) -> str:
    """The node's text; a pair of surrogate escapes, as JSON writes what is beyond 16 bits, becomes one character."""
    try:
        return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise _refused(_HALF, node.start_mark) from None


def _text(loader: _Loader, node: yaml.ScalarNode) -> str:
    return _whole(node)


_Loader.add_constructor("tag:yaml.org,2002:str", _text)
_Loader.add_constructor("tag:yaml.org,2002:map", _text_key)
# Dates are text here, and so are YAML 1.1's base-60 numbers: "22:22" is a port mapping that somebody forgot to quote.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in ("tag:yaml.org,2002:timestamp",)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
