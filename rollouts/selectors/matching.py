"""A revision's spec, and who would be in its set right now; outside any lock, because a group source may be slow."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from agent.wire.manifest import DeploymentSpec
from devices.selectors import match
from fleet.targeting import conditions
from fleet.targeting.policy import Candidate
from rollouts.models import Revision


def spec_of(revision: Revision) -> DeploymentSpec:
    """The revision's spec as its type."""
    return msgspec.convert(revision.spec, DeploymentSpec)


def latecomers(revision: Revision, devices: Collection[Candidate] | None = None) -> list[str] | None:
    """Names of devices that match now and are not in the frozen set, sorted (DEP-10): two queries.

    None while the group source has no answer, because nobody knows then.
    """
    spec = spec_of(revision)
    found = match(spec.targetSelector, spec.allowedGroups, devices)
    if found.obstacle is not None:
        return [] if found.obstacle.reason == conditions.NO_DEVICE else None
    frozen = set(revision.targets.order_by().values_list("device_uid", flat=True))
    return sorted(choice.device.name for choice in found.chosen if choice.device.uid not in frozen)
