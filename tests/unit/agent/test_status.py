"""What ``fleet-agent status`` says of the updater and of attempts (AGT-13)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.app import build, enrol
from agent.runtime.simulated import SimulatedHost, SimulatedRuntime
from agent.status import lines
from agent.upgrades.client import UpdaterError
from agent.wire.messages import AttemptState
from agent.wire.updater import AGENT_UPGRADE_V1, AnyReply, GetStatus, JournalPage, Request, Standing, UpdaterStatus
from tests.support.devices import ManualClock, configuration
from tests.support.fake_control import FakeControlPlane

UID = "11111111-2222-4333-8444-555555555555"
pytestmark = pytest.mark.clause("AGT-13")


class Scripted:
    """An updater that says what the test sets."""

    def __init__(self) -> None:
        self.standing: Standing | None = None
        self.is_there = True

    def ask(self, request: Request) -> AnyReply:
        if not self.is_there:
            raise UpdaterError("the updater does not run")
        standings = [self.standing] if self.standing else []
        if isinstance(request, GetStatus):
            return UpdaterStatus("0.1.0", "b", capabilities=["AgentUpgradeV1"], attempts=standings)
        assert self.standing
        return JournalPage(self.standing)


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[tuple[Scripted, Callable[[], str]]]:
    clock, updater = ManualClock(), Scripted()
    with FakeControlPlane() as control:
        config = configuration(tmp_path, control)
        enrol(config, control.token)
        runtime = SimulatedRuntime(clock=clock)
        agent = build(config, runtime=runtime, host=SimulatedHost(), clock=clock, updater=updater)

        def show() -> str:
            agent.upgrade()
            return "\n".join(lines(agent.status(), is_running=True))

        yield updater, show


def standing(state: AttemptState, step: str, message: str) -> Standing:
    return Standing(
        attempt=UID, state=state, step=step, message=message, executor=AGENT_UPGRADE_V1, version="1.4.0"
    )  # fmt: skip


def test_an_open_attempt_is_shown_with_step_and_sentence_until_it_is_over(
    shown: tuple[Scripted, Callable[[], str]],
) -> None:
    updater, show = shown
    assert "Updater         0.1.0, capable of AgentUpgradeV1" in show()
    updater.standing = standing(AttemptState.RUNNING, "download", "3 of 25 MB")
    assert f"Upgrade         agent 1.4.0: running, download (attempt {UID})\n    3 of 25 MB\n" in show()
    updater.standing = standing(AttemptState.COMPLETED, "readiness", "")
    assert "Upgrade " not in show()


def test_what_root_has_to_end_is_shown_with_the_command(shown: tuple[Scripted, Callable[[], str]]) -> None:
    updater, show = shown
    updater.standing = standing(AttemptState.ROLLBACK_FAILED, "restore", "neither agent could be started")
    said = show()
    assert "agent 1.4.0: rollback-failed, restore" in said
    assert "root ends it on this device with: fleet-updater repair" in said


def test_an_updater_that_does_not_answer_is_said(shown: tuple[Scripted, Callable[[], str]]) -> None:
    updater, show = shown
    updater.is_there = False
    assert "Updater         none answers" in show()
