"""An agent's process against a real control plane with a waiting process: told at once, and not lost without it."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import requests

from agent.status import Status
from agent.store import Store
from devices.models import DesiredHead, Device
from devices.services import token_create
from fleet.core import clock
from harness.control_plane import ROOT, ControlPlane
from harness.process import ManagedProcess
from harness.waiting import wait_until
from tests.integration.waiting.crowd import change

pytestmark = [pytest.mark.database(transaction=True), pytest.mark.slow]

POLL_SECONDS = 3
CONFIG = """\
[server]
url = "{web}"
wait_url = "{waiting}"
wait_spread_seconds = 0.1
[device]
id = "edge-0"
[agent]
state_dir = "{state}"
poll_seconds = {poll}
[runtime]
kind = "simulated"
"""


class Agent:
    """``fleet-agent`` of an enrolled device with simulated containers."""

    def __init__(self, folder: Path, web: str, waiting: str) -> None:
        self._config, self._state = folder / "agent.toml", folder / "state"
        self._config.write_text(CONFIG.format(web=web, waiting=waiting, state=self._state, poll=POLL_SECONDS))
        until = clock.now() + timedelta(days=1)
        plain = token_create(name="one", expires_at=until, use_limit=1, labels={}, groups=[], actor=None)[1]
        enrol = self._command("enroll", "--token-file", "-")
        subprocess.run(enrol, cwd=ROOT, input=plain, text=True, check=True, capture_output=True)
        self.process = ManagedProcess("agent", self._command("run"), log=folder / "agent.log", cwd=ROOT)

    def _command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "agent", "--config", str(self._config), *words]

    def is_up_to_date(self) -> bool:
        status = Store(self._state).status(Status)
        return status is not None and status.desired_version == DesiredHead.objects.get().version


def test_an_agent_is_told_at_once_and_polls_again_when_the_process_is_gone(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    waiting = control_plane.waiting()
    agent = Agent(tmp_path, control_plane.web(), waiting)
    with agent.process:
        agent.process.start()
        wait_until(lambda: is_held(waiting), seconds=20, what="it waits")
        assert agent.process.stop(seconds=3) == 0
        agent.process.start()
        wait_until(lambda: is_held(waiting), seconds=20, what="it waits again")
        for _ in range(3):  # from the first word on, polls are minutes apart
            change(Device.objects.all())
            wait_until(agent.is_up_to_date, seconds=POLL_SECONDS + 3, what="it is told")
        next(each for each in control_plane.processes if each.name == "waiting").kill()
        for _ in range(2):
            change(Device.objects.all())
            wait_until(agent.is_up_to_date, seconds=POLL_SECONDS + 7, what="it polls as before")


def is_held(waiting: str) -> bool:
    return bool(requests.get(f"{waiting}/readyz", timeout=5).json()["waiting"] == 1)
