"""What apps above add to a device's object, so that nothing here has to know them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from rest_framework import serializers

from devices.models import Device

_fields: dict[str, dict[str, serializers.Field[Any, Any, Any, Any]]] = {"spec": {}, "status": {}}


def add_field(part: str, name: str, field: serializers.Field[Any, Any, Any, Any]) -> None:
    """Show a field in ``spec`` or ``status`` of every device. What it reads of the device, ``devices.selectors`` has to
    be told too (``relate``), or each row costs a query.
    """
    _fields[part][name] = field


class Extensible(serializers.Serializer[Device]):
    """A part of a device's object that apps above add to."""

    part = ""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Its own, and those that were added."""
        added: Mapping[str, serializers.Field[Any, Any, Any, Any]] = deepcopy(_fields[self.part])
        return {**super().get_fields(), **added}
