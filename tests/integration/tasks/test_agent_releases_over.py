"""What has begun unheard, and what is over, when another agent is wanted next (UPG-10, TSK-5)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent.wire.messages import AttemptState
from devices.models import Connectivity
from fleet.core import clock
from tasks import services
from tasks.models import TaskRun
from tasks.policy import artifact
from tasks.selectors.agents import release_spec
from tests.integration.tasks.test_agent_releases import Releases
from tests.integration.upgrades.agents import target
from upgrades.models import DesiredAgent
from upgrades.services import agent_upgrade_give_up, agent_upgrade_set

pytestmark = [pytest.mark.clause("UPG-10"), pytest.mark.database]


@pytest.fixture
def releases(db: None) -> Iterator[Releases]:
    made = Releases()
    with clock.reading(lambda: made.now):
        yield made


@pytest.mark.parametrize("end", ["deadline", "operator"])
def test_a_device_that_had_begun_unheard_when_the_rollout_was_stopped_completes_after_all(
    releases: Releases, end: str
) -> None:
    (device,) = releases.others("edge-1")
    run = releases.release()
    if end == "deadline":
        releases.later(hours=2)
        run = releases.look(run)
    else:
        services.taskrun_end(run=run, actor=None)
    run = releases.becomes(run, device)
    assert releases.attempts(device) == ["completed"]
    assert releases.shown(run)["edge-1"].startswith("Completed")


def test_an_upgrade_that_was_replaced_while_it_ran_can_be_given_up_on_its_device(releases: Releases) -> None:
    (device,) = releases.others("edge-1")
    agent_upgrade_set(device=device, target=target(), actor=None)
    releases.says_attempt(device, AttemptState.RUNNING)
    agent_upgrade_set(device=device, target=target("9.9.9"), actor=None)
    agent_upgrade_give_up(device=device, actor=None)
    assert releases.attempts(device)[0] == "given-up"


def test_advice_names_a_command_that_there_is(releases: Releases) -> None:
    (device,) = releases.others("edge-1")
    run = releases.release()
    releases.says_attempt(device, AttemptState.RUNNING)
    device.heartbeat.__class__.objects.filter(device=device).update(connectivity=Connectivity.OFFLINE)
    run = releases.look(run)
    assert "fleetctl agentrelease give-up default/next edge-1" in run.message


def test_a_rollout_that_completed_stays_so_when_the_next_version_is_rolled_out(releases: Releases) -> None:
    (device,) = releases.others("edge-1")
    first = releases.becomes(releases.release(), device)
    assert first.phase == "Completed"
    second = releases.release(name="later", version="1.5.0")
    first = releases.look(releases.look(first))
    assert releases.shown(first) == {"edge-1": "Completed"}
    releases.becomes(second, device, version="1.5.0")
    first = releases.look(releases.look(first))
    assert releases.shown(first) == {"edge-1": "Completed"}


def test_what_an_operator_wanted_before_the_rollout_is_not_taken_back_with_it(releases: Releases) -> None:
    (device,) = releases.others("edge-1")
    same = artifact(release_spec(releases.release()), "amd64")
    DesiredAgent.objects.all().delete()
    agent_upgrade_set(device=device, target=same, actor=None)
    (run,) = TaskRun.objects.all()
    services.taskrun_end(run=run, actor=None)
    assert releases.asked() == {"edge-1"}
