"""What applying a manifest would do, as the editor shows it; each app says it of its own kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fleet.core.door import Admitted


@dataclass(slots=True)
class Preview:
    """What applying one manifest would do."""

    name: str
    outcome: str
    generation: int
    matched: int = 0
    canaries: list[str] = field(default_factory=list)
    obstacle: str = ""
    joining: list[str] = field(default_factory=list)
    leaving: list[str] = field(default_factory=list)
    latecomers: list[str] = field(default_factory=list)
    difference: list[tuple[str, str]] = field(default_factory=list)


Previewer = Callable[[Admitted, Any], Preview]
_PREVIEWERS: dict[str, Previewer] = {}


def add_previewer(kind: str, previewer: Previewer) -> None:
    """Say who previews manifests of this kind, for this user."""
    _PREVIEWERS[kind] = previewer


def preview(admitted: Admitted, user: Any) -> Preview:
    """What applying would do now; nothing is changed.

    Raises:
        FleetError: when the service would refuse it.
    """
    return _PREVIEWERS[admitted.manifest.kind](admitted, user)
