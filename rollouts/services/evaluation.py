"""The one step that brings a revision forward, whatever was missed before (level-triggered).

Locks are always taken in the order revision, heads of devices (ascending), targets; matching happens before any lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

from django.db import IntegrityError
from django.db.models import Exists, OuterRef, QuerySet

from agent.wire.messages import DEPLOYMENT_KIND
from devices.selectors import Match, match
from devices.services import mailbox
from fleet.core import clock
from fleet.core.fsm import locked
from fleet.targeting import conditions
from fleet.targeting.models import TargetState
from fleet.targeting.policy import gate_is_open
from fleet.targeting.services import targets_absorb, targets_fail_forgotten, targets_freeze, targets_release
from rollouts import policy
from rollouts.models import LIVE_PHASES, Life, Phase, Revision, Target
from rollouts.selectors import standing
from rollouts.selectors.matching import spec_of
from rollouts.services.history import phase_move, tell
from rollouts.services.resolving import images_pin, resolvable
from rollouts.services.status import conclude, stay_pending

#: How often a freeze is tried when devices are forgotten in the meantime; then the next pass goes on.
MATCHES = 3


def revision_evaluate(*, revision_id: int) -> None:
    """Freeze, absorb, resolve, release, conclude (DEP-10 to DEP-13, DEP-15, DEP-16, DEP-18).

    May run at any time, twice at once, or late: it compares what is wanted with what devices said and takes the steps
    that are due. A process that dies between two of its transactions leaves what the next call completes (R10). A
    revision that is gone or over is left alone.
    """
    if _brought_up_to_date(revision_id):
        # A transaction of its own: heads of devices are locked before any target is touched, as everywhere.
        with _live(revision_id) as revision:
            if revision is not None:
                _release(revision)


def _brought_up_to_date(revision_id: int) -> bool:
    """Freeze or absorb; whether somebody has to be told after that."""
    for _ in range(MATCHES - 1):
        with suppress(IntegrityError):  # a device was forgotten between matching and freezing: match again
            return _bring_up_to_date(revision_id)
    return _bring_up_to_date(revision_id)


def _bring_up_to_date(revision_id: int) -> bool:
    found = _match_if_pending(revision_id)
    with _live(revision_id) as revision:
        return revision is not None and _step(revision, found)


def _match_if_pending(revision_id: int) -> Match | None:
    revision = Revision.objects.filter(pk=revision_id, phase=Phase.PENDING).first()
    if revision is None:
        return None
    spec = spec_of(revision)
    return match(spec.targetSelector, spec.allowedGroups)


@contextmanager
def _live(revision_id: int) -> Iterator[Revision | None]:
    try:
        with locked(Revision, revision_id) as revision:
            over = revision.phase not in LIVE_PHASES or revision.deployment.life != Life.ACTIVE
            yield None if over else revision
    except Revision.DoesNotExist:
        yield None


def _step(revision: Revision, found: Match | None) -> bool:
    now = clock.now()
    if revision.phase == Phase.PENDING:
        return _freeze(revision, found, now) if found else False
    targets_fail_forgotten(revision.targets.all(), now=now)
    _absorb(revision, now)
    counted = standing.tally(revision, now)
    if policy.must_release(counted) or resolvable(revision):
        return True
    conclude(revision, counted=counted, now=now)
    return False


def _absorb(revision: Revision, now: datetime) -> None:
    targets_absorb(revision.targets.all(), evidence=standing.evidence(revision), now=now)


def _freeze(revision: Revision, found: Match, now: datetime) -> bool:
    if found.obstacle is not None:
        stay_pending(revision, obstacle=found.obstacle, now=now)
        return False
    size = targets_freeze(Target, chosen=found.chosen, owner={"revision": revision}, now=now)
    canaries = sum(choice.device.canary for choice in found.chosen)
    revision.conditions = conditions.frozen_conditions(
        revision.conditions, size, canaries, now=now, generation=revision.generation
    )
    phase_move(revision, to=Phase.CANARY if canaries else Phase.RELEASING, message="", now=now)
    return True


def _release(revision: Revision) -> None:
    """Tell canaries at once, and everybody else when the gate is open at this instant (DEP-11).

    Tags are pinned before the gate is judged: a canary that proved another digest has proved nothing (DEP-18).
    """
    now = clock.now()
    if images_pin(revision):
        _absorb(revision, now)
    counted = standing.tally(revision, now)
    held = revision.targets.filter(state=TargetState.HELD)
    if counted.canaries.held:
        _inform(revision, held.filter(canary=True), now)
    if not counted.opened and gate_is_open(counted):
        _withdraw_from_leavers(revision)
        _inform(revision, held.filter(canary=False), now)
        revision.opened_at = now
    conclude(revision, counted=standing.tally(revision, now), now=now)


def _inform(revision: Revision, held: QuerySet[Target], now: datetime) -> None:
    present = held.filter(device__isnull=False)
    devices = list(present.order_by("device_id").values_list("device_id", flat=True))
    mailbox.desired_put(
        kind=DEPLOYMENT_KIND,
        key=str(revision.deployment.uid),
        document=revision.document,
        device_ids=devices,
    )
    count = targets_release(present, now=now)
    if count:
        tell(
            revision.deployment,
            reason="Released",
            message=f"generation {revision.generation} was given to {_devices(count)}",
        )


def _withdraw_from_leavers(revision: Revision) -> None:
    """Devices that had an earlier revision and are not in this set lose the deployment now, not before (DEP-13)."""
    holding = mailbox.holders(DEPLOYMENT_KIND, str(revision.deployment.uid)).filter(remove=False)
    kept = revision.targets.filter(device_id=OuterRef("device_id"))
    leavers = list(holding.filter(~Exists(kept)).order_by("device_id").values_list("device_id", flat=True))
    if leavers:
        mailbox.desired_withdraw(kind=DEPLOYMENT_KIND, key=str(revision.deployment.uid), device_ids=leavers)
        tell(revision.deployment, reason="Withdrawn", message=f"{_devices(len(leavers))} left the target set")


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count} devices"
