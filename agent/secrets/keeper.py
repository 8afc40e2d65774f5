"""When secrets are resolved (AGT-10): for a new revision, before a container is created, when an operator says so.

They are not watched: in between, a deployment has the values that it was resolved with, in memory and in the cache.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping

import msgspec

from agent.secrets.cache import Entry, SecretCache
from agent.secrets.resolution import NONE, Resolution, references
from agent.secrets.sources import Answers, Sources
from agent.wire.manifest import SecretRef
from agent.wire.messages import DeploymentDocument, SecretValue

#: No document has this revision: whatever is kept under it is resolved anew at the next occasion.
_STALE = 0


class SecretKeeper:
    """The secrets of all deployments, shared by the threads that work on them (one per deployment at a time)."""

    def __init__(self, sources: Sources, cache: SecretCache) -> None:
        self._sources = sources
        self._cache = cache
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] | None = None
        #: What deployments had before, in memory only: containers that were made with it may still run, and speak.
        self._former: dict[str, frozenset[tuple[SecretRef, str]]] = {}
        self._orders = 0

    def known(self, document: DeploymentDocument) -> Resolution:
        """The values of this very revision; resolved now when they are not known yet. Else no source is asked."""
        needed = references(document.score)
        if not needed:
            return NONE
        with self._lock:
            entry = self._loaded().get(document.uid)
        kept = _values(entry)
        if entry is None or entry.revision != document.revision or not kept.keys() >= set(needed):
            return self._resolve(document, needed)
        return Resolution({reference: kept[reference] for reference in needed}, is_fresh=False)

    def kept(self, uid: str) -> Resolution:
        """What was resolved last for a deployment, whichever revision that was, and before; asks no source."""
        with self._lock:
            former = self._former.get(uid, frozenset())
            return Resolution(_values(self._loaded().get(uid)), is_fresh=False, former=former)

    def anew(self, document: DeploymentDocument) -> Resolution:
        """The values as the sources have them now; a source that cannot be asked is replaced by what is kept."""
        needed = references(document.score)
        return self._resolve(document, needed) if needed else NONE

    def expire(self, taken: Callable[[], None] = lambda: None) -> None:
        """Resolve everything anew when it is next worked on.

        ``taken`` is called when that is on disk, so that neither a crash nor an order that comes meanwhile is lost.
        """
        with self._lock:
            stale = {uid: msgspec.structs.replace(entry, revision=_STALE) for uid, entry in self._loaded().items()}
            self._replace(stale)
            taken()
            self._orders += 1

    def keep_only(self, uids: Collection[str]) -> None:
        """Forget what belongs to deployments that are no longer desired."""
        with self._lock:
            if self._entries is None and not self._cache.exists():
                return
            self._replace({uid: entry for uid, entry in self._loaded().items() if uid in uids})
            self._former = {uid: former for uid, former in self._former.items() if uid in uids}

    # Inside --------------------------------------------------------------------------------------------------------

    def _resolve(self, document: DeploymentDocument, needed: list[SecretRef]) -> Resolution:
        """Without the lock while sources are asked: one that hangs holds up its own deployment only (AGT-12)."""
        orders = self._orders
        answers = self._sources.ask(document.uid, needed)
        with self._lock:
            entries = self._loaded()
            entry = entries.get(document.uid)
            resolution = _combined(answers, {ref: value for ref, value in _values(entry).items() if ref in needed})
            if not resolution.problems:
                # What a source could not confirm stays due: the next occasion asks again.
                revision = entry.revision if entry and answers.unknown else document.revision
                if orders != self._orders:
                    revision = _STALE  # an order that came meanwhile is about values that may have changed since
                past = _values(entry).items() - resolution.values.items()
                if past:
                    self._former[document.uid] = self._former.get(document.uid, frozenset()) | past
                found = [SecretValue(name=ref.name, key=ref.key, value=v) for ref, v in resolution.values.items()]
                self._replace({**entries, document.uid: Entry(revision, found)})
        return resolution

    def _loaded(self) -> dict[str, Entry]:
        if self._entries is None:
            self._entries = self._cache.load()
        return self._entries

    def _replace(self, entries: dict[str, Entry]) -> None:
        if entries != self._entries:
            self._entries = entries
            self._cache.save(entries)


def _combined(answers: Answers, kept: Mapping[SecretRef, str]) -> Resolution:
    """With a problem nothing may change, and what is kept is what the containers that run were made with."""
    problems = dict(answers.problems)
    values = dict(answers.values)
    for reference, reason in answers.unknown.items():
        if reference in kept:
            values[reference] = kept[reference]
        else:
            problems[reference] = f"{reason}; no value is kept from before"
    return Resolution({**values, **kept} if problems else values, problems)


def _values(entry: Entry | None) -> dict[SecretRef, str]:
    return {SecretRef(item.name, item.key): item.value for item in entry.values} if entry else {}
