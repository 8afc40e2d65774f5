"""A fixed sequence and where something stands in it: the phases of a rollout or run, the steps of an attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

#: How the last step that was reached ended: its look and its icon. Without an end it is still under way.
ENDS = {
    "": ("now", "sync"),
    "done": ("done", "check"),
    "failed": ("now failed", "close"),
    "ended": ("now ended", "block"),
}
#: What a look is called where there is no room for an icon.
WORDS = {"done": "done", "now": "under way", "now failed": "failed", "now ended": "ended", "skipped": "left out"}


@dataclass(frozen=True, slots=True)
class Step:
    """One dot; ``look`` is done, now, failed, ended, skipped or ahead."""

    name: str
    look: str
    icon: str
    at: datetime | None = None
    note: str = ""

    @property
    def words(self) -> str:
        """``simulate: done``."""
        return f"{self.name}: {WORDS.get(self.look, 'not begun')}"


def step(name: str, offset: int, at: datetime | None = None, *, end: str = "", note: str = "") -> Step:
    """The step that is ``offset`` after the last one that was reached, which ended as :data:`ENDS` says."""
    if offset > 0:
        return Step(name, "ahead", "more_horiz")
    look, icon = ENDS["done" if offset < 0 else end]
    return Step(name, look, icon, at, note if offset == 0 else "")


def skipped(name: str, note: str) -> Step:
    """A step that does not take place."""
    return Step(name, "skipped", "remove", None, note)


def dots(steps: Sequence[Step], position: int) -> SafeString:
    """The sequence in a table's cell: a dot per step, and in words which one was reached."""
    reached = steps[position]
    words = f"{position + 1} of {len(steps)}"
    drawn = format_html_join(
        "", '<i class="hf-{}" title="{}"></i>', ((each.look.replace(" ", " hf-"), each.words) for each in steps)
    )
    return format_html(
        '<span class="hf-steps" aria-hidden="true">{}</span><span class="hf-small hf-nowrap">{} '
        '<span class="hf-mute">{}</span></span>',
        drawn,
        reached.name,
        words,
    )
