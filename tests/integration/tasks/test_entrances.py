"""Task runs over REST, in the admin and by fleetctl (TSK-6, TSK-8)."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import Group, User
from django.test import Client

from agent.wire.messages import AttemptState
from fleet.ctl.commands import describe, get
from fleet.ctl.watching import Seen
from tasks.models import TaskRun
from tests.integration.admin.pages import at, words
from tests.integration.api.rest import Rest, problem
from tests.integration.tasks.tasks import Tasks

ONE = "namespaces/default/taskruns/upgrade/"


@pytest.fixture
def rest(db: None) -> Rest:
    return Rest.of(User.objects.create_superuser("ada"))


@pytest.fixture
def browser(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("eve"))
    return client


@pytest.mark.clause("TSK-1", "TSK-6")
def test_a_run_over_rest_from_apply_to_the_end_of_its_journal(tasks: Tasks, rest: Rest) -> None:
    good, bad = tasks.updaters(["edge-1", "edge-2"])
    assert rest.apply(yaml.safe_dump(tasks.taskrun())).json()["results"][0]["outcome"] == "created"
    tasks.look(TaskRun.objects.get())
    tasks.says_attempt(good, AttemptState.COMPLETED)
    for _ in range(5):
        tasks.reports_attempt(bad, AttemptState.RUNNING)
    tasks.says_attempt(bad, AttemptState.FAILED, message="no space on /boot")
    status = rest.get(ONE)["status"]
    assert (status["phase"], status["counts"]["completed"], status["counts"]["failed"]) == ("Failed", 1, 1)
    (row,) = status["targets"]
    assert (row["device"], row["step"], row["message"]) == ("edge-2", "full-upgrade", "no space on /boot")
    assert [line["number"] for line in row["journal"]] == [4, 5, 6]
    assert [each["device"] for each in rest.get(f"{ONE}targets/", state="converged")["results"]] == ["edge-1"]
    assert rest.names("taskruns/", phase="Failed") == ["upgrade"]
    assert rest.call("POST", f"{ONE}recreate/").json()["metadata"]["name"] == "upgrade-2"
    assert rest.call("DELETE", ONE).status_code == 204
    assert rest.names("taskruns/") == ["upgrade-2"]


@pytest.mark.clause("TSK-6")
def test_no_more_than_fifty_targets_are_listed_and_the_others_counted(tasks: Tasks, rest: Rest) -> None:
    tasks.updaters([f"edge-{number}" for number in range(53)])
    tasks.run()
    status = rest.get(ONE)["status"]
    assert (len(status["targets"]), status["targetsOmitted"]) == (50, 3)


@pytest.mark.clause("ADM-2")
def test_a_viewer_looks_and_changes_nothing(tasks: Tasks) -> None:
    tasks.run()
    bob = User.objects.create_user("bob")
    bob.groups.add(Group.objects.get(name="viewer"))
    viewer = Rest.of(bob)
    assert viewer.get(ONE)["status"]["phase"] == "Pending"
    for method, path in (("DELETE", ONE), ("POST", f"{ONE}end/"), ("POST", f"{ONE}recreate/")):
        assert "tasks." in problem(viewer.call(method, path), 403)["detail"]


@pytest.mark.clause("TSK-8")
def test_the_admin_shows_runs_with_steps_and_journals_and_finds_them_by_device(tasks: Tasks, browser: Client) -> None:
    (device,) = tasks.updaters(["edge-1"])
    run = tasks.run()
    tasks.says_attempt(device, AttemptState.FAILED, message="the lock was held")
    shown = words(browser.get(at("tasks_taskrun_change", run.pk)))
    for expected in ("edge-1 failed: the lock was held", "full-upgrade", "offered to 1 device"):
        assert expected in shown
    journal = words(browser.get(at("upgrades_attempt_change", tasks.attempt(device).pk)))
    assert "full-upgrade" in journal
    assert "upgrade" in words(browser.get(at("tasks_taskrun_changelist"), {"q": "edge-1"}))
    assert "default/ upgrade" not in words(browser.get(at("tasks_taskrun_changelist"), {"q": "edge-9"}))
    browser.post(at("tasks_taskrun_recreate", run.pk))
    assert TaskRun.objects.filter(name="upgrade-2").exists()
    browser.post(at("tasks_taskrun_remove", run.pk))
    assert "deleted" in words(browser.get(at("tasks_taskrun_changelist")))


@pytest.mark.clause("TSK-1")
def test_a_run_is_pasted_in_the_admin_with_a_preview(tasks: Tasks, browser: Client) -> None:
    tasks.updaters(["edge-1"], canary=True)
    text = yaml.safe_dump(tasks.taskrun())
    shown = words(browser.post(at("rollouts_deployment_add"), {"manifest": text, "stage": "preview"}))
    assert "would be created" in shown
    assert "edge-1" in shown
    answer = browser.post(at("rollouts_deployment_add"), {"manifest": text, "stage": "apply"})
    assert answer.headers["Location"] == at("tasks_taskrun_change", TaskRun.objects.get().pk)


@pytest.mark.clause("TSK-6", "API-2")
def test_fleetctl_prints_what_the_server_says(
    tasks: Tasks, rest: Rest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (device,) = tasks.updaters(["edge-1"])
    tasks.run()
    tasks.says_attempt(device, AttemptState.RUNNING)
    found = rest.get(ONE)
    get.show_sort(get.TASKRUNS, [found], get.Format.TABLE)
    heads, row = capsys.readouterr().out.splitlines()
    assert heads.split() == [
        "NAMESPACE",
        "NAME",
        "PHASE",
        "TARGETS",
        "COMPLETED",
        "FAILED",
        "DEADLINE",
        "CREATED",
        "MESSAGE",
    ]
    assert row.split()[:6] == ["default", "upgrade", "Running", "1", "0", "0"]
    assert Seen(0, found["status"]).summary.startswith("Running, 0 of 1 completed, 1 released. Waiting for edge-1")
    monkeypatch.setattr(describe, "client", lambda _: _Direct(rest))
    describe.taskrun(None, "upgrade", "default")  # type: ignore[arg-type]  # no command line, so no context
    told = capsys.readouterr().out
    assert "offered to 1 device" in told
    assert "full-upgrade" in told


class _Direct:
    """The client's two calls, answered without a network."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    def get(self, path: str) -> Any:
        return json.loads(self._rest.call("GET", path).content)

    def pages(self, path: str) -> Any:
        return self._rest.get(path)["results"]
