"""Charts as SVG: drawn by the server, readable without scripts, described in words for screen readers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

RADIUS, STROKE = 42, 13
CIRCUMFERENCE = 2 * math.pi * RADIUS
WIDTH, HEIGHT, FOOT, SIDE = 480, 130, 20, 26


@dataclass(frozen=True, slots=True)
class Slice:
    """One part of a whole: how many, in which tone, called what, and where it leads."""

    count: int
    tone: str
    word: str
    link: str = ""


def donut(slices: Sequence[Slice], noun: str) -> SafeString:
    """A ring with the total in its middle."""
    total = sum(each.count for each in slices)
    words = ", ".join(f"{each.count} {each.word}" for each in slices) if total else f"no {noun}"
    arcs, turned = [], 0.0
    for each in slices:
        length = CIRCUMFERENCE * each.count / total if total else 0
        if length:
            arcs.append((each.tone, f"{length:.2f} {CIRCUMFERENCE - length:.2f}", f"{-turned:.2f}"))
        turned += length
    ring = format_html_join(
        "",
        '<circle cx="55" cy="55" r="42" fill="none" stroke-width="13" class="hf-stroke-{}" stroke-dasharray="{}"'
        ' stroke-dashoffset="{}" transform="rotate(-90 55 55)"/>',
        arcs,
    )
    return format_html(
        '<svg class="hf-chart" viewBox="0 0 110 110" role="img" aria-label="{}"><title>{}</title>'
        '<circle cx="55" cy="55" r="42" fill="none" stroke-width="13" class="hf-stroke-mute" opacity=".35"/>{}'
        '<text x="55" y="60" text-anchor="middle" class="hf-big">{}</text>'
        '<text x="55" y="75" text-anchor="middle">{}</text></svg>',
        words,
        words,
        ring,
        total,
        noun,
    )


@dataclass(frozen=True, slots=True)
class Column:
    """One stack of a column chart: (count, tone) from the bottom up, with a label below and words for the tooltip."""

    parts: Sequence[tuple[int, str]]
    label: str
    words: str


def columns(stacks: Sequence[Column], description: str) -> SafeString:
    """Stacked columns over time, the newest right; the axis is labelled at its highest value."""
    highest = max([sum(count for count, _ in stack.parts) for stack in stacks] or [0])
    scale = (HEIGHT - FOOT - 12) / max(highest, 1)
    step = (WIDTH - SIDE) / max(len(stacks), 1)
    drawn = format_html_join(
        "", "{}", ((_stack(stack, SIDE + index * step, step, scale),) for index, stack in enumerate(stacks))
    )
    base = HEIGHT - FOOT
    return format_html(
        '<svg class="hf-chart" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>'
        '<line class="hf-axis" x1="{}" x2="{}" y1="{}" y2="{}"/><line class="hf-axis" x1="{}" x2="{}" y1="12" y2="12"'
        ' stroke-dasharray="2 3"/><text x="{}" y="16" text-anchor="end">{}</text>'
        '<text x="{}" y="{}" text-anchor="end">0</text>{}</svg>',
        *(WIDTH, HEIGHT, description, description),
        *(SIDE, WIDTH, base, base),
        *(SIDE, WIDTH),
        *(SIDE - 5, max(highest, 1)),
        *(SIDE - 5, base + 4, drawn),
    )


def _stack(stack: Column, left: float, step: float, scale: float) -> SafeString:
    rects, top = [], float(HEIGHT - FOOT)
    for count, tone in stack.parts:
        height = count * scale
        top -= height
        if count:
            rects.append((f"{left + step * 0.15:.1f}", f"{top:.1f}", f"{step * 0.7:.1f}", f"{height:.1f}", tone))
    return format_html(
        '<g><title>{}</title><rect x="{}" y="0" width="{}" height="{}" fill="transparent"/>{}{}</g>',
        stack.words,
        f"{left:.1f}",
        f"{step:.1f}",
        HEIGHT - FOOT,
        format_html_join("", '<rect x="{}" y="{}" width="{}" height="{}" rx="1.5" class="hf-fill-{}"/>', rects),
        format_html(
            '<text x="{}" y="{}" text-anchor="middle">{}</text>', f"{left + step / 2:.1f}", HEIGHT - 5, stack.label
        )
        if stack.label
        else "",
    )
