"""The task runs' pages: write, preview, confirm, watch, act."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml
from django.contrib.auth.models import Group
from django.test import Client

from agent.wire.messages import AttemptState
from devices.models import Connectivity
from fleet.core import clock
from tasks.models import TaskRun
from tests.integration.admin.pages import at, buttons, rows, words
from tests.integration.tasks.tasks import Tasks

pytestmark = pytest.mark.clause("TSK-8")
LIST, ADD, RUN = "tasks_taskrun_changelist", "tasks_taskrun_add", "tasks_taskrun_change"


@pytest.fixture
def tasks(db: None) -> Iterator[Tasks]:
    made = Tasks()
    with clock.reading(lambda: made.now):
        yield made


@pytest.fixture
def deployer(tasks: Tasks, signed_in: object) -> Client:
    """An operator who may deploy to the group ``lab``."""
    client: Client = signed_in("operator")  # type: ignore[operator]
    tasks.group("lab").deployers.add(Group.objects.get(name="operator"))
    return client


# Writing -------------------------------------------------------------------------------------------------------------


def test_an_empty_list_tells_how_to_begin(deployer: Client) -> None:
    page = deployer.get(at(LIST))
    assert "No task was run yet" in words(page)
    assert "fleetctl apply -f" in words(page)
    assert at(ADD) in page.content.decode()


@pytest.mark.clause("TSK-1")
def test_the_editor_begins_with_a_manifest_that_is_accepted(deployer: Client, tasks: Tasks) -> None:
    tasks.updaters(["edge-1"], canary=True)
    tasks.updaters(["edge-2", "edge-3"])
    text = deployer.get(at(ADD)).context["manifest"]
    preview = deployer.post(at(ADD), {"manifest": text, "stage": "preview"})
    assert "would be created" in words(preview)
    assert "Would match 3 devices" in words(preview)
    assert "Canaries, first edge-1" in words(preview)
    assert not TaskRun.objects.exists()
    done = deployer.post(at(ADD), {"manifest": text, "stage": "apply"}, follow=True)
    assert done.redirect_chain[-1][0] == at(RUN, TaskRun.objects.get().pk)


@pytest.mark.clause("TSK-1")
def test_a_field_in_the_executor_is_refused_with_its_line(deployer: Client, tasks: Tasks) -> None:
    manifest = tasks.taskrun()
    manifest["spec"]["systemUpgradeV1"] = {"packages": ["vim"]}
    text = yaml.safe_dump(manifest, sort_keys=False)
    page = deployer.post(at(ADD), {"manifest": text, "stage": "preview"})
    assert "spec.systemUpgradeV1.packages" in words(page)
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "packages" in line)
    assert f'data-line="{line}"' in page.content.decode()


# Watching ------------------------------------------------------------------------------------------------------------


@pytest.mark.clause("TSK-3")
def test_a_run_is_shown_with_its_canaries_apart_and_each_devices_step(viewer: Client, tasks: Tasks) -> None:
    canary, sick = tasks.updaters(["canary-1", "canary-2"], canary=True)
    tasks.updaters(["edge-1", "edge-2", "edge-3"])
    run = tasks.run()
    tasks.says_attempt(canary, AttemptState.COMPLETED)
    tasks.reports_attempt(sick, AttemptState.RUNNING, step="simulate", message="fetches the lists")
    tasks.says_attempt(sick)
    page = viewer.get(at(RUN, run.pk))
    text = words(page)
    assert "Canaries 2" in text
    assert "Other devices 3" in text
    assert "3 held back" in text
    assert "simulate 4 of 8" in text
    assert "verify 8 of 8" in text
    assert text.index("canary-2") < text.index("edge-1")
    for device in (canary, sick):
        assert at("devices_device_change", device.pk) in page.content.decode()
        assert at("upgrades_attempt_change", tasks.attempt(device).pk) in page.content.decode()


@pytest.mark.clause("TSK-4")
def test_the_deadline_is_said_before_and_after_it(viewer: Client, tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    run = tasks.run()
    tasks.says_attempt(device, AttemptState.RUNNING)
    assert "Nothing new begins after 2026-12-01 15:00:00 UTC : 1 h left" in words(viewer.get(at(RUN, run.pk)))
    tasks.later(hours=2)
    tasks.look(run)
    tasks.says_attempt(device, AttemptState.COMPLETED)
    text = words(viewer.get(at(RUN, run.pk)))
    assert "The deadline passed 1 h ago" in text
    assert "Completed (late)" in text
    assert "1 completed late" in text


def test_targets_are_found_by_state_and_by_device(viewer: Client, tasks: Tasks) -> None:
    devices = tasks.updaters([f"edge-{number:03}" for number in range(120)])
    run = tasks.run()
    tasks.says_attempt(devices[7], AttemptState.FAILED, message="no space on /boot")
    shown = {name: words(viewer.get(at("tasks_taskrun_live", run.pk), {"state": name})) for name in ("", "failed")}
    assert "50 of 120" in shown[""]
    assert "edge-007 why it is in the set" in shown["failed"]
    assert "edge-008 why" not in shown["failed"]
    found = words(viewer.get(at(RUN, run.pk), {"find": "EDGE-11"}))
    assert "edge-117" in found
    assert "edge-007 why" not in found
    assert "No device fits" in words(viewer.get(at(RUN, run.pk), {"find": "nowhere\x00"}))
    assert "edge-119" in words(viewer.get(at(RUN, run.pk), {"page": "3"}))


def test_a_device_that_needs_root_says_so_with_the_command(viewer: Client, tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    run = tasks.run()
    tasks.says_attempt(device, AttemptState.REPAIR_REQUIRED, message="dpkg was interrupted")
    for page in (
        at(RUN, run.pk),
        at(RUN, run.pk) + "?state=repair",
        at("devices_device_change", device.pk),
        at("upgrades_attempt_change", tasks.attempt(device).pk),
        at("index"),
    ):
        assert "fleet-updater repair" in words(viewer.get(page)), page
    assert "1 device in repair-required" in words(viewer.get(at("index")))


def test_what_waits_for_a_silent_device_names_its_silence(viewer: Client, tasks: Tasks) -> None:
    (device,) = tasks.updaters(["edge-1"])
    run = tasks.run()
    tasks.goes(device, Connectivity.OFFLINE)
    assert "offline" in words(viewer.get(at(RUN, run.pk))).partition("What it says")[2]


def test_runs_are_found_by_name_and_by_device(viewer: Client, tasks: Tasks) -> None:
    tasks.updaters(["edge-1"])
    tasks.run(tasks.taskrun("march"))
    tasks.run(tasks.taskrun("april"))
    tasks.updaters(["late-1"])
    tasks.run(tasks.taskrun("may"))

    def found(query: str) -> list[str]:
        return sorted(row.split()[1] for row in rows(viewer.get(at(LIST), {"q": query})))

    assert found("default/ma") == ["march", "may"]
    assert found("pril") == ["april"]
    assert found("late-1") == ["may"]
    assert found("edge-1") == ["april", "march", "may"]


def test_the_overview_tells_of_runs_under_way(viewer: Client, tasks: Tasks) -> None:
    tasks.updaters(["edge-1"])
    run = tasks.run()
    page = viewer.get(at("index"))
    assert "0 of 1 completed" in words(page)
    assert at(RUN, run.pk) in page.content.decode()


# Acting --------------------------------------------------------------------------------------------------------------


def test_a_repetition_is_asked_for_first_and_leads_to_the_new_run(deployer: Client, tasks: Tasks) -> None:
    good, bad = tasks.updaters(["edge-1", "edge-2"])
    run = tasks.run()
    assert buttons(deployer.get(at(RUN, run.pk))) == {"end", "remove"}
    tasks.says_attempt(good, AttemptState.COMPLETED)
    tasks.says_attempt(bad, AttemptState.FAILED)
    assert buttons(deployer.get(at(RUN, run.pk))) == {"recreate", "remove"}
    asked = words(deployer.get(at("tasks_taskrun_recreate", run.pk)))
    assert "selects 1 device by name" in asked
    done = deployer.post(at("tasks_taskrun_recreate", run.pk), follow=True)
    made = TaskRun.objects.get(name="upgrade-2")
    assert "default/upgrade-2 was made" in words(done)
    assert at(RUN, made.pk) in done.content.decode()
    assert list(tasks.look(made).targets.values_list("device_name", flat=True)) == ["edge-2"]


def test_somebody_who_may_not_deploy_to_the_group_is_told_so(tasks: Tasks, signed_in: object) -> None:
    tasks.updaters(["edge-1"])
    client: Client = signed_in("operator")  # type: ignore[operator]
    page = client.post(at(ADD), {"manifest": yaml.safe_dump(tasks.taskrun()), "stage": "apply"})
    assert page.status_code == 403
    assert "lab" in words(page)
    assert not TaskRun.objects.exists()
