"""What a person sees of a simulation: a live line, progress, and a summary."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Callable, Mapping

from django.core.management.base import OutputWrapper

from agent.wire.messages import DeploymentState
from agent.wording import utc
from simulation.fleet import SimulatedFleet
from simulation.meter import PUT_OFF

NAMED = 5
_TERMINAL_EVERY_SECONDS, _FILE_EVERY_SECONDS = 1.0, 5.0
_CLEAR = "\r\x1b[K"


class Screen:
    """A line that is overwritten on a terminal, and a line now and then in a file."""

    def __init__(self, out: OutputWrapper) -> None:
        self._out = out
        self._is_terminal = out.isatty()
        self._is_open = False
        self.every_seconds = _TERMINAL_EVERY_SECONDS if self._is_terminal else _FILE_EVERY_SECONDS

    def live(self, text: str) -> None:
        """Show ``text`` as the current line."""
        self._out.write(f"{_CLEAR}{text}" if self._is_terminal else f"{text}\n", ending="")
        self._out.flush()
        self._is_open = self._is_terminal

    def end(self) -> None:
        """What comes next begins on a line of its own."""
        if self._is_open:
            self.live("")  # nothing but a cleared line
            self._is_open = False

    def progress(self, what: str, of: int) -> Callable[[int], None]:
        """Something that hears how many are done, and shows about a hundred steps."""
        step = max(1, of // (100 if self._is_terminal else 10))

        def show(done: int) -> None:
            if done % step == 0 or done == of:
                self.live(f"{what} {done:,} of {of:,}")
            if done == of:
                self.end()

        return show


class Line:
    """The live line; rates are those since the line before."""

    def __init__(self, fleet: SimulatedFleet) -> None:
        self._fleet = fleet
        self._at, self._requests = fleet.clock.monotonic(), fleet.meter.requests

    def text(self) -> str:
        fleet = self._fleet
        now, requests = fleet.clock.monotonic(), fleet.meter.requests
        rate = (requests - self._requests) / max(now - self._at, 1e-9)
        self._at, self._requests = now, requests
        return (
            f"{utc(fleet.clock.now())}  online {fleet.reachable():,}/{len(fleet.devices):,}  "
            f"converged {fleet.count(DeploymentState.CONVERGED):,}  failed {fleet.count(DeploymentState.FAILED):,}  "
            f"errors {fleet.meter.errors() + fleet.failures:,}  {rate:,.0f} requests/s"
        )


def cast_line(fleet: SimulatedFleet) -> str:
    """Who is simulated, with which faults."""
    characters = [device.character for device in fleet.devices]
    liars = Counter(character.lie for character in characters if character.lie)
    parts = {
        "now and then offline": sum(bool(c.offline_seconds) for c in characters),
        "slow": sum(bool(c.slow_seconds) for c in characters),
        **{f"lying about {lie}" if lie != "converged" else "claiming convergence": n for lie, n in liars.items()},
        "repeating reports": sum(c.duplicates for c in characters),
        "reordering reports": sum(c.reorders for c in characters),
        "with a wrong clock": sum(bool(c.clock_seconds) for c in characters),
    }
    said = ", ".join(f"{number:,} {what}" for what, number in parts.items() if number)
    names = fleet.script.names()
    return f"{len(names):,} devices, {names[0]} to {names[-1]}: {said or 'no faults'}"


def summary(fleet: SimulatedFleet, seconds: float, behind: Mapping[str, str]) -> str:
    """What was asked and answered, and whether anything was lost."""
    meter = fleet.meter
    lines = [
        f"{len(fleet.devices):,} devices for {seconds:,.0f} s, {meter.requests:,} requests "
        f"({_megabytes():,.0f} MB resident at most)",
        "",
        "request        number   half below   99 % below   slowest",
    ]
    for kind, taken in sorted(meter.seconds.items()):
        times = "".join(f"{meter.quantile(kind, share) * 1000:>10,.0f} ms" for share in (0.5, 0.99, 1))
        lines.append(f"{kind:<12}{len(taken):>9,}{times}")
    lines += ["", *_refusals(fleet)]
    lines.append(_said_of(behind, len(fleet.devices)))
    if fleet.failures:
        lines.append(f"Agents failed {fleet.failures:,} times; the log has each.")
    return "\n".join(lines)


def _refusals(fleet: SimulatedFleet) -> list[str]:
    refusals = fleet.meter.refusals
    if not refusals:
        return ["No request failed."]
    return [
        f"{number:,} requests were {why}{' and repeated later' if why == PUT_OFF else ''}, "
        f"such as: {fleet.meter.words[why]}"
        for why, number in sorted(refusals.items())
    ]


def _said_of(behind: Mapping[str, str], devices: int) -> str:
    if not behind:
        return f"No report was lost: the last acknowledged one of all {devices:,} devices was taken in."
    named = "; ".join(f"{name}: {what}" for name, what in sorted(behind.items())[:NAMED])
    return f"Reports of {len(behind):,} devices were not taken in (do workers run?): {named}"


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
