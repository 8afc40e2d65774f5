"""YAML and JSON as plain data, with limits that no honest manifest comes near."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

import yaml

MAX_BYTES = 1_048_576
MAX_DEPTH = 32
MAX_NODES = 50_000
MAX_DOCUMENTS = 100
#: Never part of a name, an image or a path. Line breaks and tabs are left to the grammar of each field.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Unreadable(ValueError):
    """The text is no YAML or JSON that we take; ``path`` says where, as far as known."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


def documents(data: bytes) -> list[Any]:
    """The documents of a text; JSON is read as the YAML that it is.

    Raises:
        Unreadable: when it is too large, too deep, not UTF-8, not YAML, has a key twice, or uses anchors or tags.
    """
    if len(data) > MAX_BYTES:
        raise Unreadable(f"the text has {len(data)} bytes; allowed: {MAX_BYTES}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"the text is not UTF-8: byte {error.start} does not fit") from None
    if found := _CONTROL.search(text):
        raise Unreadable(
            f"line {text.count(chr(10), 0, found.start()) + 1} has the control character "
            f"U+{ord(found.group()):04X}; allowed: none (in double quotes, write it as an escape)"
        )
    try:
        found_documents = [each for each in yaml.load_all(text, Loader=_Loader) if each is not None]
    except yaml.MarkedYAMLError as error:
        raise Unreadable(_explain(error)) from None
    except yaml.YAMLError as error:
        raise Unreadable(f"the text is not YAML: {error}") from None
    except RecursionError:
        raise Unreadable(f"the text is nested too deeply; allowed: {MAX_DEPTH} levels") from None
    if not found_documents:
        raise Unreadable("the text has no manifest in it")
    return found_documents


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
        raise _refused("half of a surrogate pair, which is no character", node.start_mark) from None


def _text(loader: _Loader, node: yaml.ScalarNode) -> str:
    return _whole(node)


_Loader.add_constructor("tag:yaml.org,2002:str", _text)
_Loader.add_constructor("tag:yaml.org,2002:map", _text_key)
# Dates are text here, and so are YAML 1.1's base-60 numbers: "22:22" is a port mapping that somebody forgot to quote.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in ("tag:yaml.org,2002:timestamp",)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
