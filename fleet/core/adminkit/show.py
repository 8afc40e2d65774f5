"""Small pieces of HTML that all admin pages share. Colour never carries a meaning alone: each has an icon and words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from fleet.core import clock

#: What is shown for "nothing".
DASH = mark_safe('<span class="hf-mute" aria-label="none">&ndash;</span>')

#: The mark of a canary.
STAR = mark_safe(
    '<span class="hf-star" title="Canary" aria-hidden="true">★</span><span class="hf-hidden">canary</span>'
)

MINUTE, HOUR, DAY = 60, 3600, 86400
NOW = 5


@dataclass(frozen=True, slots=True)
class Look:
    """How a state appears: ``tone`` is one of good, info, warn, bad, mute."""

    tone: str
    icon: str


def icon(name: str) -> SafeString:
    """A decorative symbol, unseen by screen readers."""
    return format_html('<span class="material-symbols-outlined hf-icon" aria-hidden="true">{}</span>', name)


def badge(text: str, look: Look, *, title: str = "") -> SafeString:
    """A state as icon, word and colour."""
    return format_html(
        '<span class="hf-badge hf-{}"{}>{}{}</span>',
        look.tone,
        format_html(' title="{}"', title) if title else "",
        icon(look.icon),
        text,
    )


def chips(labels: Mapping[str, str], *, limit: int | None = None) -> SafeString:
    """Labels as ``key=value`` chips, sorted; what is beyond ``limit`` is counted."""
    if not labels:
        return DASH
    items = sorted(labels.items())
    shown = items if limit is None else items[:limit]
    text = format_html_join(" ", '<span class="hf-chip">{}</span>', ((_pair(k, v),) for k, v in shown))
    more = len(items) - len(shown)
    if more:
        rest = ", ".join(_pair(key, value) for key, value in items[len(shown) :])
        text = format_html('{} <span class="hf-chip hf-mute" title="{}">+{} more</span>', text, rest, more)
    return format_html('<span class="hf-chips">{}</span>', text)


def names(values: Iterable[object]) -> SafeString:
    """Names (or objects that have one) as chips."""
    values = [str(value) for value in values]
    if not values:
        return DASH
    return format_html(
        '<span class="hf-chips">{}</span>',
        format_html_join(" ", '<span class="hf-chip">{}</span>', ((value,) for value in values)),
    )


def _pair(key: str, value: str) -> str:
    return f"{key}={value}" if value else key


def moment(at: datetime | None) -> SafeString:
    """A time as people say it ("3 min ago"), with the exact one (UTC) as its title."""
    if at is None:
        return DASH
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', at.isoformat(timespec="seconds"), exact(at), relative(at)
    )


def exact(at: datetime) -> str:
    """A time to the second, in UTC."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def relative(at: datetime) -> str:
    """How long ago, or how long until, in one unit."""
    seconds = int((clock.now() - at).total_seconds())
    if abs(seconds) < NOW:
        return "now"
    return f"in {_span(-seconds)}" if seconds < 0 else f"{_span(seconds)} ago"


def lasting(since: datetime | None) -> SafeString:
    """How long something has been so ("for 3 min"), with its begin (UTC) as the title."""
    if since is None:
        return DASH
    words = f"for {_span(max(0, int((clock.now() - since).total_seconds())))}"
    return format_html('<time datetime="{}" title="since {}">{}</time>', since.isoformat(), exact(since), words)


def _span(seconds: int) -> str:
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def took(amount: timedelta) -> str:
    """How long something took, in at most two units: ``3 min 20 s``."""
    seconds = int(amount.total_seconds())
    for size, unit, below, smaller in ((DAY, "d", HOUR, "h"), (HOUR, "h", MINUTE, "min"), (MINUTE, "min", 1, "s")):
        if seconds >= size:
            rest = seconds % size // below
            return f"{seconds // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{seconds} s"


def bar(parts: Sequence[tuple[int, str, str]], *, total: int) -> SafeString:
    """A stacked bar as SVG. Each part is (count, tone, word); the words are its description for screen readers."""
    rects, left = [], 0.0
    for count, tone, _ in parts:
        width = 100 * count / total if total else 0
        rects.append((f"{left:.3f}", f"{width:.3f}", tone))
        left += width
    words = ", ".join(f"{count} {word}" for count, _, word in parts if count) or "nothing yet"
    return format_html(
        '<svg class="hf-bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="{}">'
        "<title>{}</title>{}</svg>",
        words,
        words,
        format_html_join("", '<rect x="{}" y="0" width="{}" height="8" class="hf-fill-{}"/>', rects),
    )


def plural(count: int, noun: str, many: str = "") -> str:
    """``1 device``, ``3 devices``."""
    return f"{count} {noun if count == 1 else many or noun + 's'}"
