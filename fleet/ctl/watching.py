"""Following a rollout until it is decided: what to ask, when to stop, and what changed. Clock and sleep are given."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fleet.ctl.client import Client
from fleet.ctl.errors import Exit, Refused
from fleet.ctl.output import moment

EVERY_SECONDS = 1.0
#: Up to this many devices each has a row; above, only those that have not converged.
ROWS = 50
_ENDS = {
    "Converged": Exit.OK,
    "Completed": Exit.OK,
    "Failed": Exit.FAILED,
    "Superseded": Exit.FAILED,
    "Cancelled": Exit.FAILED,
}


@dataclass(frozen=True, slots=True)
class Timing:
    """How time passes; ``limit`` in seconds, None is for ever."""

    limit: float | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at a rollout; ``trouble`` when there was no answer."""

    generation: int = 0
    status: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    trouble: str = ""

    @property
    def phase(self) -> str:
        return str(self.status.get("phase", ""))

    @property
    def progress(self) -> str:
        """``generation 2: Canary, 1 of 5 converged, 1 released``; a task run has no generations."""
        counts = self.status["counts"]
        words = [f"{self.done} of {counts['matched']} {self.end}", f"{counts['released']} released"]
        words += [f"{counts[name]} {name}" for name in ("failed", "offline") if counts.get(name)]
        which = f"generation {self.generation}: " if self.generation else ""
        return f"{which}{self.phase}, {', '.join(words)}"

    @property
    def end(self) -> str:
        """What a device has done that is through with it."""
        return "converged" if "converged" in self.status["counts"] else "completed"

    @property
    def done(self) -> int:
        return int(self.status["counts"][self.end])

    @property
    def summary(self) -> str:
        """The progress and the sentence."""
        sentence = self.status["message"]
        return f"{self.progress}. {sentence}" if sentence else self.progress


def look(client: Client, path: str) -> Seen:
    """Where the rollout stands now."""
    found = client.get(path)
    status = found["status"]
    rows = status["targets"]
    if status["counts"]["matched"] <= ROWS:
        rows = client.get(f"{path}targets/", pageSize=ROWS)["results"]
    return Seen(found["metadata"].get("generation", 0), status, rows)


def follow(client: Client, path: str, timing: Timing) -> Iterator[Seen]:
    """Looks, one a second, until the rollout is decided.

    A server that does not answer for a while is asked again: it may be restarting.

    Raises:
        Refused: with code 6 when the time is up, 3 when the deployment is gone.
    """
    begun, latest = timing.clock(), Seen()
    while True:
        try:
            latest = look(client, path)
            yield latest
        except Refused as refused:
            if refused.code is not Exit.UNREACHABLE:
                raise
            yield Seen(trouble=str(refused))
        if latest.phase in _ENDS:
            return
        if timing.limit is not None and timing.clock() - begun >= timing.limit:
            where = latest.summary if latest.status else "there was no answer"
            raise Refused(f"not decided after {timing.limit:g} s: {where}", Exit.UNREACHABLE)
        timing.sleep(EVERY_SECONDS)


def verdict(seen: Seen) -> Exit:
    """The exit code that the last look stands for."""
    return _ENDS[seen.phase]


def target_words(row: dict[str, Any]) -> str:
    """``edge-1 (canary) released, online: pulling the image``."""
    canary = " (canary)" if row["canary"] else ""
    message = f": {row['message']}" if row["message"] else ""
    return f"{row['device']}{canary} {row['state']}, {row['connectivity']}{message}"


def changes(before: Seen, now: Seen) -> list[str]:
    """A line for everything that is different, for streams that are no terminal."""
    if now.trouble:
        return [now.trouble] if now.trouble != before.trouble else []
    known = {row["device"]: target_words(row) for row in before.rows}
    lines = [f"  {words}" for row in now.rows if (words := target_words(row)) != known.get(row["device"])]
    moved = not before.status or before.progress != now.progress
    # The sentence is mostly what the devices' own lines say; alone it is said only when they say nothing.
    if moved or (not lines and before.summary != now.summary):
        lines.insert(0, now.summary)
    return lines


def since(seen: Seen) -> str:
    """When the phase began."""
    return moment(seen.status["since"])
