"""A measured figure against its floor, and how both are printed."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a run. ``ratio`` is measured by floor; ``at_least`` says on which side of ``limit`` is good."""

    name: str
    measured: float
    floor: float
    unit: str
    limit: float
    at_least: bool
    floor_is: str

    @property
    def ratio(self) -> float:
        return self.measured / self.floor

    @property
    def good(self) -> bool:
        return self.ratio >= self.limit if self.at_least else self.ratio <= self.limit

    def line(self) -> str:
        """A row of the table in docs/reference/benchmarks.md."""
        sign = "≥" if self.at_least else "≤"
        return (
            f"| {self.name} | {self.measured:,.4g} {self.unit} | {self.floor:,.4g} {self.unit} ({self.floor_is}) "
            f"| {self.ratio:.2f} | {sign} {self.limit:g} | {'yes' if self.good else 'NO'} |"
        )


def table(figures: Iterable[Figure]) -> str:
    """The figures as Markdown."""
    head = "| what | measured | floor | ratio | wanted | met |\n| --- | --- | --- | --- | --- | --- |"
    return "\n".join([head, *(figure.line() for figure in figures)])


def machine() -> str:
    """What these figures were measured on."""
    cores = sum(line.startswith("processor") for line in Path("/proc/cpuinfo").read_text().splitlines())
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.machine(),
    )
    return f"{cores} cores ({model}), Python {platform.python_version()}, Linux {platform.release()}"
