"""What the editor adds to a manifest's text: differences, and the line of a fault."""

from __future__ import annotations

import difflib
import re

import yaml

#: Above this size a fault is shown without its line: finding it would take longer than the reader's patience.
MAX_LOCATED = 65_536
_PART = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def difference(before: str, after: str) -> list[tuple[str, str]]:
    """A unified difference as (kind, line), kind being add, remove, place or same."""
    kinds = {"+": "add", "-": "remove", "@": "place"}
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=3))[2:]
    return [(kinds.get(line[:1], "same"), line) for line in lines]


def line_of(source: str, path: str, document: int = 0) -> int | None:
    """The line (from 1) of the deepest part of ``path`` that the YAML text has; None when it cannot be told."""
    if len(source) > MAX_LOCATED:
        return None
    try:
        nodes = list(yaml.compose_all(source, Loader=yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError):
        return None
    if document >= len(nodes) or nodes[document] is None:
        return None
    return _deepest(nodes[document], path)


def _deepest(node: yaml.Node, path: str) -> int:
    line = node.start_mark.line
    for index, key in _PART.findall(path):
        step = _item(node, int(index)) if index else _value(node, key)
        if step is None:
            break
        line, node = step
    return line + 1


def _item(node: yaml.Node, index: int) -> tuple[int, yaml.Node] | None:
    if not isinstance(node, yaml.SequenceNode) or index >= len(node.value):
        return None
    return node.value[index].start_mark.line, node.value[index]


def _value(node: yaml.Node, key: str) -> tuple[int, yaml.Node] | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next(((name.start_mark.line, value) for name, value in node.value if name.value == key), None)
