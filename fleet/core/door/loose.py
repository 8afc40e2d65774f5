"""Typed objects from data that does not fit, so that the rules between fields are checked on what does (DEP-2).

A person shall learn of all faults at once: also of a port that is published twice, although elsewhere a field has a
typing error. What is missing or of the wrong type is replaced by something neutral; faults found at such places are
dropped, because they speak of our filler.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

from msgspec import inspect

from agent.wire.rules import Fault


def build(kind: type, data: Any) -> Any:
    """An instance of this struct type from whatever is there; never raises for wrong data."""
    return _Builder().build(inspect.type_info(kind), data)


def sound(faults: Iterable[Fault], broken: Iterable[str]) -> list[Fault]:
    """Those faults that lie neither at, nor above, nor below a place that is known to be broken."""
    places = tuple(broken)
    return [fault for fault in faults if not any(_touch(fault.path, place) for place in places)]


def _touch(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return longer == shorter or longer.startswith((f"{shorter}.", f"{shorter}["))


class _Builder:
    """Makes fillers that are never equal, so that none of them clashes with another."""

    def __init__(self) -> None:
        self._numbers = count()

    def build(self, kind: inspect.Type, data: Any) -> Any:
        if isinstance(kind, inspect.StructType):
            return self._struct(kind, data if isinstance(data, dict) else {})
        if isinstance(kind, inspect.ListType):
            return [self.build(kind.item_type, item) for item in data] if isinstance(data, list) else []
        if isinstance(kind, inspect.DictType):
            pairs = data.items() if isinstance(data, dict) else ()
            return {key: self.build(kind.value_type, value) for key, value in pairs}
        if isinstance(kind, inspect.UnionType):
            return self._optional(kind, data)
        return self._scalar(kind, data)

    def _struct(self, kind: inspect.StructType, data: dict[str, Any]) -> Any:
        values = {}
        for field in kind.fields:
            if field.encode_name in data or field.required:
                values[field.name] = self.build(field.type, data.get(field.encode_name))
        return kind.cls(**values)

    def _optional(self, kind: inspect.UnionType, data: Any) -> Any:
        if data is None:
            return None
        return self.build(next(each for each in kind.types if not isinstance(each, inspect.NoneType)), data)

    def _scalar(self, kind: inspect.Type, data: Any) -> Any:
        wanted = {inspect.StrType: str, inspect.BoolType: bool, inspect.IntType: int}.get(type(kind))
        if wanted is None:
            return data
        if isinstance(data, wanted):
            return data
        return f"?{next(self._numbers)}" if wanted is str else wanted()
