"""Which container names this device's deployments hold: since when, and with which container. Kept on disk.

Labels say what is ours while Podman knows a container. Claims say it when labels cannot: a power loss may leave an
entry in Podman's storage that blocks the name and has no labels (P1), and a person may have made a container again by
hand, labels and all (AGT-7). Without claims, which an older agent did not keep, containers are taken as they are found.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from agent.reconcile import labels
from agent.runtime.base import Container, State

#: How far the runtime's clock reading for a new container may lie before the agent's own just before it.
GRAIN_SECONDS = 1.0


class Claim(msgspec.Struct, frozen=True):
    """``container`` is the id of the one that was made for it; empty until it was seen."""

    uid: str
    since: float
    container: str = ""


class Claims:
    """By container name. ``save`` is called after every change; safe in threads."""

    def __init__(
        self, kept: Mapping[str, Claim] | None = None, save: Callable[[dict[str, Claim]], None] = lambda claims: None
    ) -> None:
        self._claims = dict(kept or {})
        self._save = save
        self._lock = threading.Lock()

    def take(self, name: str, uid: str, now: float) -> None:
        """A container of this name is about to be made for a deployment."""
        self._change({name: Claim(uid, now)})

    def notice(self, uid: str, containers: Iterable[Container]) -> None:
        """These carry the deployment's labels; those whose making was not seen to its end are recognised now."""
        news = {}
        for container in containers:
            claim = self._claims.get(container.name)
            if claim is None or claim.uid != uid:
                news[container.name] = Claim(uid, container.created_at, container.id)
            elif not claim.container:
                news[container.name] = msgspec.structs.replace(claim, container=container.id)
        self._change(news)

    def is_remade(self, container: Container) -> bool:
        """Whether somebody else made this one, in place of the one that was made for its deployment."""
        claim = self._claims.get(container.name)
        return claim is not None and claim.container not in ("", container.id)

    def holder(self, ghost: Container) -> str:
        """The deployment that a storage entry without labels was made for; empty when it is not ours."""
        claim = self._claims.get(ghost.name)
        return claim.uid if claim is not None and ghost.created_at >= claim.since - GRAIN_SECONDS else ""

    def release(self, uid: str, keep: Collection[str] = ()) -> None:
        """The deployment has no containers any more but those of these names."""
        self._change({name: None for name, claim in self._claims.items() if claim.uid == uid and name not in keep})

    def _change(self, news: dict[str, Claim] | dict[str, None]) -> None:
        if not news:
            return
        with self._lock:
            merged: dict[str, Claim | None] = {**self._claims, **news}
            self._claims = {name: claim for name, claim in merged.items() if claim is not None}
            self._save(self._claims)


def deployment_of(container: Container, owner: labels.Owner, claims: Claims) -> str:
    """The uid of the deployment of this device that a container belongs to; empty for a foreign one."""
    if container.state is State.GHOST:
        return claims.holder(container)
    return container.labels[labels.UID] if owner.owns(container.labels) else ""
