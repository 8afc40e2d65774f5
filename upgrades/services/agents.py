"""The agent that a device shall run is set, cleared and asked for again (UPG-1, UPG-2).

Locks are taken in one order: heads of devices (ascending), wanted agents, attempts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import msgspec
from django.contrib.auth.models import User
from django.db import transaction

from agent.wire import canonical
from agent.wire.manifest import AgentUpgrade
from agent.wire.rules import Fault
from agent.wire.updater import AGENT_UPGRADE_V1
from devices.models import Device
from devices.services import mailbox
from fleet.core import audit, clock
from fleet.core.audit import Happening, actor_name
from fleet.core.door import Admitted
from fleet.core.errors import Conflict, Invalid
from fleet.core.kinds import Done
from upgrades import policy
from upgrades.models import OPEN, Attempt, DesiredAgent, Standing, State
from upgrades.selectors import may_be_retried
from upgrades.services.giving_up import attempt_give_up
from upgrades.services.offering import attempts_withdraw
from upgrades.services.standing import agents_evaluate

KIND = "Device"
FIELD = "spec.agentUpgrade"
_FIELDS = (
    "spec",
    "spec_hash",
    "version",
    "generation",
    "set_at",
    "set_by",
    "attempt",
    "state",
    "state_since",
    "message",
)
BATCH = 2000


@dataclass(frozen=True, slots=True)
class AgentsSet:
    """What setting many came to, by device id: those whose target changed, and those that are asked once more."""

    changed: frozenset[int]
    again: frozenset[int]


def device_apply(*, manifest: Admitted, actor: User | None, dry_run: bool = False) -> Done:
    """Bring an enrolled device's ``agentUpgrade`` to what the manifest says; without one it keeps the agent it has.

    Raises:
        Invalid: there is no such device, or the artifact is none for its architecture (case U7).
    """
    name = manifest.manifest.metadata.name
    device = Device.objects.filter(name=name).first()
    if device is None:
        words = "no device of this name is enrolled; a manifest enrols none, a token does: fleetctl token create"
        raise Invalid(f"metadata.name: {name}: {words}", [Fault("metadata.name", words)])
    wanted = manifest.spec.get("agentUpgrade")
    target = msgspec.convert(wanted, AgentUpgrade) if wanted else None
    return agent_upgrade_set(device=device, target=target, actor=actor, dry_run=dry_run)


def agent_upgrade_set(
    *, device: Device, target: AgentUpgrade | None, actor: User | None, dry_run: bool = False
) -> Done:
    """Say which agent a device shall run, or (None) that it keeps what it has. The same again changes nothing.

    What the device has begun goes on; what it has not begun is withdrawn when the target changes.

    Raises:
        Invalid: the artifact is none for the device's architecture (case U7).
    """
    if target is not None and (problem := policy.architecture_problem(target, device.architecture)):
        raise Invalid(f"{device.name}: {problem}", [Fault(f"{FIELD}.architecture", problem)])
    with transaction.atomic():
        mailbox.heads_lock(device_ids=[device.pk])
        known = DesiredAgent.objects.select_for_update().filter(device=device).first()
        done = _done(device, known, target)
        if dry_run or done.outcome == "unchanged":
            return done
        words = f"agent {target.version}" if target else "the agent that it has"
        audit.record(actor=actor, action="set-agent", kind=KIND, name=device.name, detail={"target": words})
        if target is None:
            _clear(device, actor)
        else:
            agent_upgrades_set(devices={device.pk: target}, by=actor_name(actor))
    return done


def _done(device: Device, known: DesiredAgent | None, target: AgentUpgrade | None) -> Done:
    if known is None:
        return Done("created" if target else "unchanged", 1, device.pk)
    if target is not None and known.spec_hash == canonical.digest(target):
        return Done("unchanged", known.generation, device.pk)
    return Done("configured", known.generation + 1, device.pk)


def _clear(device: Device, actor: User | None) -> None:
    _withdraw([device.pk])
    DesiredAgent.objects.filter(device=device).delete()
    words = f"{actor_name(actor)} lets it keep the agent that it has"
    audit.event(kind=KIND, name=device.name, reason="AgentUpgradeCleared", message=words)


def agent_upgrades_set(*, devices: Mapping[int, AgentUpgrade], by: str, again: bool = False) -> AgentsSet:
    """Say which agent each of these devices (by id) shall run, in a constant number of statements. ``by`` is who wants
    it: a person, or a rollout.

    Devices that are gone meanwhile are passed over. A device that has this very target already is left alone, unless
    ``again``: then one whose attempt for it is over, and that runs another agent, is asked once more. An artifact of a
    wrong architecture is not refused here: that device says so and is sent nothing.
    """
    with transaction.atomic():
        there = mailbox.heads_lock(device_ids=list(devices))
        rows = DesiredAgent.objects.select_for_update(of=("self",)).filter(device_id__in=there).order_by("device_id")
        known = {row.device_id: row for row in rows.select_related("attempt", "device")}
        digests = {device_id: canonical.digest(devices[device_id]) for device_id in there}
        same = {device_id for device_id, row in known.items() if row.spec_hash == digests[device_id]}
        changed = frozenset(there - same)
        repeated = frozenset(row.device_id for row in known.values() if again and may_be_retried(row)) - changed
        _withdraw(changed & known.keys())
        fresh = [_row(devices[device_id], device_id, known.get(device_id), by) for device_id in sorted(changed)]
        fresh += [_once_more(known[device_id]) for device_id in sorted(repeated)]
        _write(fresh)
        _tell(changed, devices, by)
        agents_evaluate(device_ids=changed | repeated)
    return AgentsSet(changed, repeated)


def agent_upgrade_retry(*, device: Device, actor: User | None) -> None:
    """Ask a device once more for the agent that it shall run, after an attempt that is over (UPG-2).

    Raises:
        Conflict: nothing is wanted, or nothing failed.
    """
    with transaction.atomic():
        mailbox.heads_lock(device_ids=[device.pk])
        row = DesiredAgent.objects.select_for_update(of=("self",)).filter(device=device)
        known = row.select_related("attempt", "device").first()
        if known is None:
            raise Conflict(f"device {device.name} keeps the agent that it has; set {FIELD} first")
        if not may_be_retried(known):
            words = known.message[:1].lower() + known.message[1:]
            raise Conflict(f"there is nothing to retry on device {device.name}: {words}")
        _write([_once_more(known)])
        audit.record(actor=actor, action="retry-agent", kind=KIND, name=device.name, detail={"version": known.version})
        agents_evaluate(device_ids=[device.pk])


def agent_upgrade_give_up(*, device: Device, actor: User | None) -> None:
    """Wait no more for a device that began its agent upgrade and is not heard any more; it counts as failed.

    Raises:
        Conflict: there is no attempt, the device has not begun it, or has said how it went.
    """
    # One that began before another agent was wanted, or none any more, still keeps the device busy (TSK-5).
    asked = device.attempts.filter(executor=AGENT_UPGRADE_V1)
    attempt = asked.filter(state__in=OPEN).exclude(state=State.OFFERED).first() or asked.order_by("-pk").first()
    if attempt is None:
        raise Conflict(f"device {device.name} was asked for no agent upgrade, so there is none to give up")
    attempt_give_up(attempt=attempt, actor=actor)
    agents_evaluate(device_ids=[device.pk])


def _row(target: AgentUpgrade, device_id: int, known: DesiredAgent | None, by: str) -> DesiredAgent:
    now = clock.now()
    return DesiredAgent(
        device_id=device_id,
        spec=msgspec.to_builtins(target),
        spec_hash=canonical.digest(target),
        version=target.version,
        generation=known.generation + 1 if known else 1,
        set_at=now,
        set_by=by,
        state=Standing.WAITING,
        state_since=now,
    )


def _once_more(known: DesiredAgent) -> DesiredAgent:
    known.attempt = None
    known.state, known.state_since = Standing.WAITING, clock.now()
    return known


def _write(rows: list[DesiredAgent]) -> None:
    for row in rows:
        row.pk = None  # one statement for new and known ones; the device says which it is
    DesiredAgent.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["device"], update_fields=_FIELDS, batch_size=BATCH
    )


def _withdraw(device_ids: Collection[int]) -> None:
    """Take back what was offered for a target that is no longer wanted, and has not begun."""
    own = DesiredAgent.objects.filter(device_id__in=device_ids).values("attempt_id")
    attempts_withdraw(attempts=Attempt.objects.filter(pk__in=own, state=State.OFFERED), device_ids=list(device_ids))


def _tell(changed: Collection[int], devices: Mapping[int, AgentUpgrade], by: str) -> None:
    names = Device.objects.filter(pk__in=changed).order_by("name").values_list("pk", "name")
    audit.events(
        Happening(KIND, name, "AgentUpgradeSet", f"{by} wants agent {devices[device_id].version} on it")
        for device_id, name in names
    )
