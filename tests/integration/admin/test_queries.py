"""The number of queries of a page does not depend on how much there is to show."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agent.wire.messages import APT_FULL_UPGRADE_V1
from devices.models import Device, DeviceGroup, EnrolmentToken, Heartbeat
from fleet.core.door import admit
from fleet.core.models import AuditEntry, Event
from rollouts.models import Observation, Target
from tasks.models import TaskRun, TaskSchedule, TaskTarget
from tasks.services import schedule_apply, schedule_run_now, taskrun_apply, taskrun_evaluate
from tests.integration.admin.pages import at
from tests.integration.rollouts.world import World
from upgrades.models import Attempt, JournalEntry, State
from vault.services import secret_put

pytestmark = [pytest.mark.clause("ADM-1"), pytest.mark.database]
FEW, MANY = 5, 50
TARGETS = 10_000
GOOD = Path(__file__).parents[2] / "contract" / "manifests" / "good"


def _queries(client: Client, address: str) -> int:
    client.get(address)  # the session and what is cached per process
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
    return len(queries)


def _devices(world: World, first: int, last: int) -> None:
    devices = world.devices([f"edge-{n}" for n in range(first, last)])
    groups = DeviceGroup.objects.bulk_create(DeviceGroup(name=f"group-{n}") for n in range(first, last))
    for device, group in zip(devices, groups, strict=True):
        device.groups.add(group)


def _deployments(world: World, first: int, last: int) -> None:
    for n in range(first, last):
        world.rollout(world.manifest(f"app-{n}"))


def _tokens(world: World, first: int, last: int) -> None:
    for n in range(first, last):
        token = EnrolmentToken.objects.create(
            name=f"token-{n}",
            token_hash=f"{n:064}",
            created_at=world.now,
            expires_at=world.now + timedelta(days=1),
            use_limit=3,
        )
        token.groups.add(world.group(f"group-of-{n}"))


def _secrets(world: World, first: int, last: int) -> None:
    for n in range(first, last):
        secret_put(namespace="default", name=f"s{n}", values={"a": "1", "b": "2"}, registry="", actor=None)


def _task_runs(world: World, first: int, last: int) -> None:
    """Runs that wait for each other, on devices whose attempts are under way or need root."""
    names = [f"edge-{n}" for n in range(first, last)]
    devices = world.devices(names, role=f"from-{first}")
    Device.objects.filter(pk__in=[each.pk for each in devices]).update(capabilities=[APT_FULL_UPGRADE_V1])
    for n in range(first, last):
        _run(world, f"run-{n}", f"from-{first}")
    states = (State.RUNNING, State.REPAIR_REQUIRED)
    for attempt in Attempt.objects.filter(device__in=devices):
        Attempt.objects.filter(pk=attempt.pk).update(state=states[attempt.pk % 2], step="upgrade")


def _run(world: World, name: str, role: str) -> TaskRun:
    manifest = {
        "apiVersion": "fleet.nationtech.io/v1alpha1",
        "kind": "TaskRun",
        "metadata": {"name": name},
        "spec": {
            "allowedGroups": ["lab"],
            "targetSelector": {"matchLabels": {"role": role}},
            "deadlineSeconds": 3600,
            "systemUpgradeV1": {},
        },
    }
    (admitted,) = admit(json.dumps(manifest))
    run = TaskRun.objects.get(pk=taskrun_apply(manifest=admitted, actor=None).pk)
    taskrun_evaluate(run_id=run.pk)
    return run


def _schedules(world: World, first: int, last: int) -> None:
    template = (GOOD / "taskschedule.yaml").read_text()
    for n in range(first, last):
        (admitted,) = admit(template.replace("upgrade-lab-weekly", f"schedule-{n}"))
        made = TaskSchedule.objects.get(pk=schedule_apply(manifest=admitted, actor=None).pk)
        schedule_run_now(schedule=made, actor=None)


def _records(world: World, first: int, last: int) -> None:
    about = {"at": world.now, "object_kind": "Device", "object_name": "edge-1"}
    Event.objects.bulk_create(Event(**about, reason="WentOffline", message="x") for _ in range(first, last))
    AuditEntry.objects.bulk_create(AuditEntry(**about, actor_name="ada", action="x") for _ in range(first, last))


@pytest.mark.parametrize(
    ("view", "fill"),
    [
        ("devices_device_changelist", _devices),
        ("devices_devicegroup_changelist", _devices),
        ("devices_enrolmenttoken_changelist", _tokens),
        ("rollouts_deployment_changelist", _deployments),
        ("vault_secret_changelist", _secrets),
        ("core_event_changelist", _records),
        ("core_auditentry_changelist", _records),
        ("index", _devices),
        ("index", _deployments),
        ("tasks_taskrun_changelist", _task_runs),
        ("upgrades_attempt_changelist", _task_runs),
        ("tasks_taskschedule_changelist", _schedules),
        ("index", _task_runs),
        ("index", _records),
    ],
)
def test_a_list_takes_as_many_queries_for_fifty_as_for_five(
    administrator: Client, world: World, view: str, fill: Callable[[World, int, int], None]
) -> None:
    world.device("always")
    fill(world, 0, FEW)
    few = _queries(administrator, at(view))
    fill(world, FEW, MANY)
    assert _queries(administrator, at(view)) == few


def test_a_devices_page_does_not_depend_on_its_deployments(administrator: Client, world: World) -> None:
    device = world.device("edge-1")
    _deployments(world, 0, FEW)
    few = _queries(administrator, at("devices_device_change", device.pk))
    _deployments(world, FEW, MANY)
    assert _queries(administrator, at("devices_device_change", device.pk)) == few


def test_the_rollout_view_of_ten_thousand_targets_is_as_cheap_as_of_five(administrator: Client, world: World) -> None:
    small = world.devices([f"small-{n}" for n in range(FEW)], role="small")
    large = world.devices([f"large-{n}" for n in range(TARGETS)], role="large")
    taken = {}
    for name, devices in (("small", small), ("large", large)):
        deployment = world.rollout(world.manifest(name, role=name))
        Observation.objects.bulk_create(
            Observation(
                device=device,
                deployment_uid=deployment.uid,
                revision=1,
                state="progressing",
                reported_at=world.now,
                images={"api": "sha256:1"},
            )
            for device in devices
        )
        address = at("rollouts_deployment_live", deployment.pk)
        taken[name] = [_queries(administrator, f"{address}{query}") for query in ("", "?state=offline", "?find=1")]
        size = len(administrator.get(address).content)
        assert size < 200_000
    assert Target.objects.filter(revision__deployment__name="large").count() == TARGETS
    assert taken["large"] == taken["small"]
    assert Heartbeat.objects.count() == TARGETS + FEW


def test_the_page_of_a_run_with_ten_thousand_targets_is_as_cheap_as_of_five(
    administrator: Client, world: World
) -> None:
    taken = {}
    for name, size in (("small", FEW), ("large", TARGETS)):
        devices = world.devices([f"{name}-{n}" for n in range(size)], role=name)
        Device.objects.filter(pk__in=[each.pk for each in devices[:900]]).update(capabilities=[APT_FULL_UPGRADE_V1])
        run = _run(world, name, name)
        address = at("tasks_taskrun_live", run.pk)
        taken[name] = [_queries(administrator, f"{address}{query}") for query in ("", "?state=running", "?find=1")]
        assert len(administrator.get(address).content) < 200_000
    assert TaskTarget.objects.filter(run__name="large").count() == TARGETS
    assert taken["large"] == taken["small"]


def test_the_pages_of_an_attempt_and_its_device_do_not_depend_on_how_much_was_written(
    administrator: Client, world: World
) -> None:
    _task_runs(world, 0, FEW)
    attempt = Attempt.objects.all()[0]
    addresses = (at("upgrades_attempt_change", attempt.pk), at("devices_device_change", attempt.device_id))
    few = [_queries(administrator, address) for address in addresses]
    JournalEntry.objects.bulk_create(
        JournalEntry(attempt=attempt, number=n, step=f"step-{n}", event="noted", received_at=world.now)
        for n in range(1, MANY)
    )
    fields = {"device": attempt.device, "device_name": "x", "executor": "x", "title": "x"}
    times = {"begin_until": world.now, "offered_at": world.now}
    Attempt.objects.bulk_create(Attempt(**fields, **times) for _ in range(MANY))
    assert [_queries(administrator, address) for address in addresses] == few
