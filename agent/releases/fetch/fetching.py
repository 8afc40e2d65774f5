"""From an address to a whole file with the right digest, however often the connection breaks."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from agent.clock import Clock
from agent.releases.fetch import registry, web
from agent.releases.fetch.client import Client
from agent.releases.fetch.errors import FetchError
from agent.releases.fetch.partial import Partial
from agent.wire.manifest import AgentUpgrade

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0
#: Without one new byte. The updater's own limit is for the whole.
MOST_IDLE_SECONDS = 900.0

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Pauses:
    """Later and later, each between half of the pause and all of it."""

    clock: Clock
    sleep: Callable[[float], None]
    dice: random.Random = field(default_factory=random.Random)

    def after(self, failures: int, wished: float) -> None:
        """``failures`` before this one; ``wished``: by the server, in seconds."""
        pause = min(FIRST_PAUSE_SECONDS * 2.0 ** min(failures, 20), LONGEST_PAUSE_SECONDS)
        self.sleep(max(pause * self.dice.uniform(0.5, 1.0), wished))


class Fetching:
    """``say`` prints a line for whoever reads the log."""

    def __init__(self, client: Client, pauses: Pauses, say: Say) -> None:
        self._client = client
        self._pauses = pauses
        self._say = say
        self._told = 0

    def run(self, target: AgentUpgrade, archive: Path) -> None:
        """Afterwards the archive is there, whole and with its digest.

        Raises:
            FetchError: it is not; one with another digest is removed.
        """
        partial = Partial(archive)
        had_some = partial.size > 0
        self._fetch(target, partial)
        if had_some and partial.digest() != target.sha256:
            self._say("what was there from an earlier try is of something else; starts over")
            partial.remove()
            self._fetch(target, partial)
        found = partial.digest()
        if found != target.sha256:
            partial.remove()
            raise FetchError(f"the archive has the digest sha256 {found}, and not sha256 {target.sha256}")

    def _fetch(self, target: AgentUpgrade, partial: Partial) -> None:
        """Try until it is there, or nothing has come for too long."""
        now = self._pauses.clock.monotonic
        failures, size, since = 0, partial.size, now()
        while True:
            try:
                return self._try(target, partial)
            except FetchError as error:
                if partial.size > size:
                    failures, size, since = 0, partial.size, now()
                if not error.is_temporary or now() - since >= MOST_IDLE_SECONDS:
                    raise
                self._say(f"{error}; tries again")
                self._pauses.after(failures, error.retry_after)
                failures += 1

    def _try(self, target: AgentUpgrade, partial: Partial) -> None:
        is_in_registry = target.url.startswith("oci://")
        url = registry.blob_url(self._client, target) if is_in_registry else target.url
        web.fetch(self._client, url, partial, target.maxSize, self._progress)

    def _progress(self, there: int, total: int) -> None:
        """A line for every tenth of it, or for every ten megabytes."""
        step = there * 10 // total if total else there // 10_000_000
        if step != self._told:
            self._told = step
            self._say(f"{there:,} of {total:,} bytes" if total else f"{there:,} bytes")
