"""Images that the agent itself fetched, and their end when nothing uses them any more (AGT-15).

All others are never touched: neither those that were here before, nor those to which somebody gave another name.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterable

from agent.clock import Clock
from agent.runtime.base import Image, Login, Runtime, RuntimeFailure
from agent.store import KeptImage, Store

#: Between two looks: long, because a look costs a few calls and counting costs a write.
LOOK_SECONDS = 600.0

logger = logging.getLogger("agent.images")


class ImageStock:
    """Fetches, remembers on disk what it fetched, and prunes. ``prune_after_seconds`` 0 keeps everything.

    How long an image was unused is counted in time that the agent ran: a clock that is set right after years, as on
    devices without a battery, must not make old what was fetched a minute ago.
    """

    def __init__(self, runtime: Runtime, store: Store, clock: Clock, prune_after_seconds: float) -> None:
        self._runtime = runtime
        self._store = store
        self._clock = clock
        self._prune_after = prune_after_seconds
        self._lock = threading.Lock()
        self._kept = store.images()
        self._last_look: float | None = None

    def pull(self, reference: str, login: Login | None = None) -> Image:
        """Fetch an image, and remember it as ours unless it was here under another name.

        Raises:
            ImageUnavailable: as the runtime's own pull does.
        """
        before = {image.id for image in self._runtime.images()}
        pulled = self._runtime.pull(reference, login)
        given = next((image.names for image in self._runtime.images() if image.id == pulled.id), ())
        with self._lock:
            known = self._kept.get(pulled.id)
            if known is not None or pulled.id not in before:
                names = {*(known.names if known else ()), *given}
                self._keep({**self._kept, pulled.id: KeptImage(sorted(names))})
        return pulled

    def is_due(self) -> bool:
        """Whether it is time to look for what can go."""
        if not self._prune_after or not self._kept:
            return False
        pause = min(LOOK_SECONDS, self._prune_after)
        return self._last_look is None or self._clock.monotonic() >= self._last_look + pause

    def prune(self, references: Iterable[str]) -> None:
        """Remove what was unused for long enough: neither a container's, nor behind one of these ``references``.

        A failure costs nothing but time: the next look tries again.
        """
        try:
            self._prune(references)
        except RuntimeFailure as error:
            logger.warning("images were not pruned: %s", error)

    # Inside --------------------------------------------------------------------------------------------------------

    def _prune(self, references: Iterable[str]) -> None:
        now = self._clock.monotonic()
        elapsed = 0.0 if self._last_look is None else now - self._last_look
        self._last_look = now
        here = {image.id: image for image in self._runtime.images()}
        used = {container.image_id for container in self._runtime.containers()}
        if not here.keys() & self._kept.keys() <= used:
            used |= self._behind(references)
        for image_id in self._count(here, used, elapsed):
            self._remove(here[image_id])

    def _behind(self, references: Iterable[str]) -> set[str]:
        found = (self._runtime.image(reference) for reference in references)
        return {image.id for image in found if image is not None}

    def _count(self, here: dict[str, Image], used: Collection[str], elapsed: float) -> list[str]:
        """Add what has passed to those that are unused, and name those that have been for long enough."""
        with self._lock:
            ours = {image_id: kept for image_id, kept in self._kept.items() if image_id in here}
            counted = {
                image_id: KeptImage(kept.names, None if image_id in used else _longer(kept.unused_seconds, elapsed))
                for image_id, kept in ours.items()
            }
            self._keep(counted)
        return [
            image_id
            for image_id, kept in counted.items()
            if (kept.unused_seconds or 0.0) >= self._prune_after and set(here[image_id].names) <= set(kept.names)
        ]

    def _remove(self, image: Image) -> None:
        try:
            self._runtime.remove_image(image.id)
        except RuntimeFailure as error:
            logger.warning("image %s was not removed: %s", image.id[:12], error)
            return
        logger.info("image %s was removed, as nothing used it: %s", image.id[:12], ", ".join(image.names) or "no name")
        with self._lock:
            self._keep({image_id: kept for image_id, kept in self._kept.items() if image_id != image.id})

    def _keep(self, images: dict[str, KeptImage]) -> None:
        if images != self._kept:
            self._kept = images
            self._store.save_images(images)


def _longer(unused_seconds: float | None, elapsed: float) -> float:
    """Counted from the first look that finds it unused: it may have been in use until just before."""
    return 0.0 if unused_seconds is None else unused_seconds + elapsed
