"""An agent version for a label selector: the set is frozen, canaries prove it first (UPG-10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from django.db import connection
from pytest_django import DjangoAssertNumQueries

from agent.wire.messages import AttemptState
from devices.models import Device
from fleet.core import clock, door
from fleet.core.errors import Conflict
from fleet.core.kinds import manifests_apply
from releases.services import release_note, release_remove
from releases.services.shelving import Elsewhere
from tasks import services
from tasks.models import Kind, TaskRun
from tests.integration.upgrades.agents import NEW, OLD, Agents, target
from upgrades.models import DesiredAgent
from upgrades.services import agent_upgrade_retry, agent_upgrade_set, agents_evaluate

pytestmark = [pytest.mark.clause("UPG-10"), pytest.mark.database]
ARTIFACTS = {
    "amd64": {"architecture": "amd64", "url": "https://example.com/amd64", "maxSize": 30_000_000, "sha256": "ab" * 32},
    "arm64": {"architecture": "arm64", "url": "https://example.com/arm64", "maxSize": 30_000_000, "sha256": "cd" * 32},
}


class Releases(Agents):
    def manifest(self, *architectures: str, name: str = "next", version: str = NEW) -> dict[str, Any]:
        return {
            "apiVersion": "fleet.nationtech.io/v1alpha1",
            "kind": "AgentRelease",
            "metadata": {"name": name},
            "spec": {
                "allowedGroups": ["lab"],
                "targetSelector": {"matchLabels": {"role": "analyzer"}},
                "version": version,
                "artifacts": [ARTIFACTS[each] for each in architectures or ("amd64",)],
                "deadlineSeconds": 3600,
            },
        }

    def release(self, *architectures: str, **other: str) -> TaskRun:
        (done,) = manifests_apply(
            manifests=door.admit(yaml.safe_dump(self.manifest(*architectures, **other))), actor=None
        )
        return self.look(TaskRun.objects.get(pk=done.pk))

    def canary(self, name: str) -> Device:
        (device,) = self.updaters([name], canary=True, role="analyzer")
        self.reports_facts(device, agent_version=OLD, architecture="amd64", capabilities=CAPABLE)
        return device

    def others(self, *names: str, **facts: object) -> list[Device]:
        rows = self.updaters(names, role="analyzer")
        for row in rows:
            said = {"agent_version": OLD, "architecture": "amd64", "capabilities": CAPABLE, **facts}
            self.reports_facts(row, **said)
        return rows

    def becomes(self, run: TaskRun, *devices: Device, version: str = NEW) -> TaskRun:
        """Their upgrades are proven: the updater says so, and the new agent reports."""
        for device in devices:
            self.says_attempt(device, AttemptState.RUNNING, AttemptState.COMPLETED)
            self.reports_facts(device, agent_version=version)
        agents_evaluate()
        return self.look(run)

    def named(self, name: str) -> Device:
        return Device.objects.get(name=name)

    def asked(self) -> set[str]:
        return set(DesiredAgent.objects.values_list("device__name", flat=True))


CAPABLE = ["AptFullUpgradeV1", "AgentUpgradeV1"]


@pytest.fixture
def releases(db: None) -> Iterator[Releases]:
    made = Releases()
    with clock.reading(lambda: made.now):
        yield made


def test_canaries_run_it_first_and_only_their_proof_releases_the_rest(releases: Releases) -> None:
    canary = releases.canary("edge-1")
    others = releases.others("edge-2", "edge-3")
    run = releases.release()
    assert (run.kind, run.phase, releases.asked()) == (Kind.AGENT_RELEASE, "Canary", {"edge-1"})
    releases.says_attempt(canary, AttemptState.RUNNING, AttemptState.COMPLETED)
    assert releases.look(run).phase == "Canary", "the updater's word alone is no proof: the new agent has not reported"
    assert releases.asked() == {"edge-1"}
    run = releases.becomes(run, canary)
    assert (run.phase, releases.asked()) == ("Running", {"edge-1", "edge-2", "edge-3"})
    run = releases.becomes(run, *others)
    assert (run.phase, run.message) == ("Completed", "Done: 3 devices completed")
    assert releases.shown(run) == dict.fromkeys(["edge-1", "edge-2", "edge-3"], "Completed")


@pytest.mark.case("U7")
def test_a_canary_that_fails_keeps_it_from_all_others(releases: Releases) -> None:
    canary, _ = releases.canary("edge-1"), releases.others("edge-2")
    run = releases.release()
    releases.says_attempt(canary, AttemptState.RUNNING, AttemptState.FAILED, message="cannot load libssl")
    agents_evaluate()
    run = releases.look(run)
    assert run.phase == "Failed"
    assert "Canary edge-1 failed" in run.message
    assert "cannot load libssl" in run.message
    assert releases.asked() == {"edge-1"}
    assert releases.shown(run) == {"edge-1": "Failed", "edge-2": "NotStarted"}


@pytest.mark.case("U7")
def test_each_device_is_sent_the_artifact_of_its_architecture_or_nothing(releases: Releases) -> None:
    releases.others("edge-1")
    releases.others("edge-2", architecture="arm64")
    releases.others("edge-3", architecture="arm")
    releases.others("edge-4", capabilities=["AptFullUpgradeV1"])
    releases.others("edge-5", architecture="")
    run = releases.release("amd64", "arm64")
    wanted = dict(DesiredAgent.objects.values_list("device__name", "spec__sha256"))
    assert wanted == {"edge-1": "ab" * 32, "edge-2": "cd" * 32}
    assert "artifacts for amd64, arm64 and the device is arm" in releases.message(run, releases.named("edge-3"))
    assert "fleet-agent setup" in releases.message(run, releases.named("edge-4"))
    assert "has not said" in releases.message(run, releases.named("edge-5"))


def test_a_device_that_runs_it_already_counts_at_once(releases: Releases) -> None:
    canary = releases.canary("edge-1")
    releases.reports_facts(canary, agent_version=NEW)
    releases.others("edge-2")
    run = releases.look(releases.release())
    assert run.phase == "Running"
    assert releases.attempts(canary) == []
    assert "edge-2" in releases.asked()


@pytest.mark.clause("TSK-5")
def test_a_device_that_is_busy_waits_and_says_for_what(releases: Releases) -> None:
    (device,) = releases.others("edge-1")
    task = releases.run()
    run = releases.release()
    assert releases.message(run, device) == "waits for TaskRun default/upgrade"
    assert releases.asked() == set()
    releases.says_attempt(device, AttemptState.RUNNING, AttemptState.COMPLETED)
    releases.look(task)
    releases.look(run)
    assert releases.asked() == {"edge-1"}


def test_who_asks_for_another_agent_meanwhile_wins_and_the_rollout_says_so(releases: Releases) -> None:
    (device,) = releases.others("edge-1")
    run = releases.release()
    agent_upgrade_set(device=device, target=target("9.9.9"), actor=None)
    run = releases.look(run)
    assert run.phase == "Failed"
    assert "another agent is wanted of the device by now" in run.message


def test_ending_takes_back_what_no_device_has_begun(releases: Releases) -> None:
    begun, idle = releases.others("edge-1", "edge-2")
    run = releases.release()
    releases.says_attempt(begun, AttemptState.RUNNING)
    services.taskrun_end(run=run, actor=None)
    assert releases.asked() == {"edge-1"}
    assert releases.offered(idle) == []
    assert releases.shown(run) == {"edge-1": "Running", "edge-2": "Failed"}
    agents_evaluate()
    assert releases.attempts(idle) == ["withdrawn"]


def test_the_deadline_takes_back_what_no_device_has_begun(releases: Releases) -> None:
    (device,) = releases.others("edge-1")
    run = releases.release()
    releases.later(hours=2)
    run = releases.look(run)
    assert run.phase == "Failed"
    assert releases.asked() == set()
    assert releases.offered(device) == []


def test_an_operator_who_retries_a_device_sees_it_complete_after_all(releases: Releases) -> None:
    (device,) = releases.others("edge-1")
    run = releases.release()
    releases.says_attempt(device, AttemptState.RUNNING, AttemptState.FAILED, message="no space")
    agents_evaluate()
    assert releases.look(run).phase == "Failed"
    agent_upgrade_retry(device=device, actor=None)
    run = releases.becomes(run, device)
    assert releases.shown(run) == {"edge-1": "Completed"}


def test_a_second_release_of_the_same_archive_asks_again_after_a_failure(releases: Releases) -> None:
    (device,) = releases.others("edge-1")
    run = releases.release()
    releases.says_attempt(device, AttemptState.RUNNING, AttemptState.FAILED, message="no space")
    agents_evaluate()
    releases.look(run)
    again = releases.release(name="again")
    assert releases.attempts(device) == ["failed", "offered"]
    assert releases.becomes(again, device).phase == "Completed"


def test_a_spec_never_changes_and_a_task_run_may_have_the_same_name(releases: Releases) -> None:
    releases.others("edge-1")
    releases.release()
    with pytest.raises(Conflict, match="AgentRelease default/next exists with another spec"):
        releases.release(version="2.0.0")
    releases.run(releases.taskrun("next"))
    assert TaskRun.objects.filter(name="next").count() == 2


def test_an_archive_stays_on_the_shelf_while_a_rollout_holds_devices_back(releases: Releases) -> None:
    releases.canary("edge-1")
    releases.others("edge-2")
    fields = {name: ARTIFACTS["amd64"][name] for name in ("architecture", "sha256", "url")}
    shelved = release_note(elsewhere=Elsewhere(version=NEW, size=30_000_000, **fields), actor=None)
    run = releases.release()
    with pytest.raises(Conflict, match="still needed by AgentRelease default/next, device edge-1"):
        release_remove(release=shelved, actor=None)
    services.taskrun_end(run=run, actor=None)
    release_remove(release=shelved, actor=None)


@pytest.mark.clause("OPS-2")
def test_the_number_of_statements_does_not_depend_on_the_number_of_devices(
    releases: Releases, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    rows = releases.updaters([f"edge-{number}" for number in range(1000)], role="analyzer")
    Device.objects.filter(pk__in=[row.pk for row in rows]).update(
        agent_version=OLD, architecture="amd64", capabilities=CAPABLE
    )
    # SQLite takes far fewer parameters at once, so that it needs more batches.
    with django_assert_max_num_queries(80 if connection.vendor == "postgresql" else 200):
        run = releases.release()
    assert run.released == 1000
    with django_assert_max_num_queries(40):
        releases.look(run)
