"""Kinds of manifests and who brings them about: the apps above register here, the entrances know none of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from django.contrib.auth.models import User
from django.db import transaction

from agent.wire.manifest import KINDS
from fleet.core.door import Admitted
from fleet.core.errors import Denied

Outcome = Literal["created", "configured", "unchanged"]


@dataclass(frozen=True, slots=True)
class Done:
    """What applying one manifest did; ``pk`` is None after a dry run that would have created the object."""

    outcome: Outcome
    generation: int
    pk: int | None

    @property
    def message(self) -> str:
        """``generation 2``, or that nothing had to be done."""
        words = f"generation {self.generation}"
        return words if self.outcome != "unchanged" else f"{words} has this spec already"


@dataclass(frozen=True, slots=True)
class Kind:
    """``apply`` gets manifest, actor and whether it is a dry run; ``model`` is ``app_label.model`` for addresses."""

    apply: Callable[[Admitted, User | None, bool], Done]
    model: str
    permissions: tuple[str, ...]


_KINDS: dict[str, Kind] = {}


def register(name: str, kind: Kind) -> None:
    """Say who brings about manifests of this kind; called once per kind when the apps are ready."""
    _KINDS[name] = kind


def of(admitted: Admitted) -> Kind:
    """The kind of a manifest that passed the door, which admits no other."""
    return _KINDS[admitted.manifest.kind]


def check_permissions(manifests: Sequence[Admitted], actor: User | None) -> None:
    """Raises:
    Denied: the actor may not apply manifests of one of these kinds; names the permission.
    """
    for each in manifests:
        _require(actor, of(each))


def check_any_permission(actor: User) -> None:
    """Before a text is read: who may apply no kind at all learns nothing of the door.

    Raises:
        Denied: names what is missing for the first kind.
    """
    kinds = [_KINDS[name] for name in KINDS if name in _KINDS]
    if not any(actor.has_perms(kind.permissions) for kind in kinds):
        _require(actor, kinds[0])


def _require(actor: User | None, kind: Kind) -> None:
    missing = [permission for permission in kind.permissions if actor and not actor.has_perm(permission)]
    if actor and missing:
        words = " and ".join(missing)
        raise Denied(f"{actor.get_username()} lacks the permission {words}; an administrator can give it")


def manifests_apply(*, manifests: Sequence[Admitted], actor: User | None, dry_run: bool = False) -> list[Done]:
    """Apply a text as a whole or not at all: in one transaction, by kind and name, so that no two texts wait for each
    other.

    Raises:
        Denied: the actor may not apply one of the kinds, or not to one of the groups (DEP-7).
        Conflict: one of the objects is in a state in which it takes nothing. Nothing was applied then.
    """
    check_permissions(manifests, actor)
    done: dict[int, Done] = {}
    in_order = sorted(range(len(manifests)), key=lambda index: _identity(manifests[index]))
    with transaction.atomic():
        for index in in_order:
            done[index] = of(manifests[index]).apply(manifests[index], actor, dry_run)
    return [done[index] for index in range(len(manifests))]


def _identity(admitted: Admitted) -> tuple[str, str, str]:
    metadata = admitted.manifest.metadata
    return admitted.manifest.kind, metadata.namespace, metadata.name
