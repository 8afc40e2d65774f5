"""Which devices a revision is for, right now. Read-only, and outside any lock: a group source may be slow."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, field

import msgspec

from agent.wire.manifest import DeploymentSpec
from devices import group_sources
from devices.selectors import candidates
from fleet.targeting.policy import Candidate, Chosen, choose, why_nobody
from rollouts import policy
from rollouts.models import Revision

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Match:
    """The devices to freeze, or the obstacle; never both."""

    chosen: list[Chosen] = field(default_factory=list)
    obstacle: policy.Obstacle | None = None


def spec_of(revision: Revision) -> DeploymentSpec:
    """The revision's spec as its type."""
    return msgspec.convert(revision.spec, DeploymentSpec)


def match(spec: DeploymentSpec, devices: Collection[Candidate] | None = None) -> Match:
    """Labels and groups (DEP-6, DEP-7). Fails closed: without a whole answer of a group source nobody matches.

    ``devices`` saves the query when several specs are matched in a row.
    """
    try:
        source = group_sources.configured()
        if source is None:
            return Match(obstacle=policy.GROUP_SOURCE_MISSING)
        membership = group_sources.ask(source, spec.allowedGroups) if spec.allowedGroups else {}
    except group_sources.GroupSourceError as error:
        log.warning("the group source failed: %s", error)
        return Match(obstacle=policy.group_source_failed(error))
    choice = choose(spec.targetSelector, spec.allowedGroups, candidates() if devices is None else devices, membership)
    if choice.chosen:
        return Match(chosen=choice.chosen)
    return Match(obstacle=policy.no_device(why_nobody(spec.targetSelector, spec.allowedGroups, choice)))


def latecomers(revision: Revision, devices: Collection[Candidate] | None = None) -> list[str] | None:
    """Names of devices that match now and are not in the frozen set, sorted (DEP-10): two queries.

    None while the group source has no answer, because nobody knows then.
    """
    found = match(spec_of(revision), devices)
    if found.obstacle is not None:
        return [] if found.obstacle.reason == policy.NO_DEVICE else None
    frozen = set(revision.targets.order_by().values_list("device_uid", flat=True))
    return sorted(choice.device.name for choice in found.chosen if choice.device.uid not in frozen)
