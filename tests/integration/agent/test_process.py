"""The agent as a process of its own: started, killed, stopped, weighed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from agent.runtime.base import State
from agent.runtime.podman import PodmanRuntime
from agent.wire.manifest import SecretEnvVar, SecretRef
from harness.waiting import wait_until
from tests.support.fake_control import FakeControlPlane, score, service
from tests.support.podman import Containers

ROOT = Path(__file__).parents[3]
MOST_RESIDENT_MEGABYTES = 45
CONFIG = """\
[server]
url = "{url}"
[device]
id = "edge-1"
[agent]
state_dir = "{folder}/state"
poll_seconds = {poll}
heartbeat_seconds = 1
pass_seconds = {pass_}
settle_seconds = 1
pull_jitter_seconds = 0
[runtime]
socket = "{socket}"
"""


class AgentProcess:
    """``fleet-agent`` with a configuration of its own."""

    def __init__(self, folder: Path, control: FakeControlPlane, containers: Containers) -> None:
        self._folder, self._url, self._socket = folder, control.url, containers.podman.socket
        self.configure(poll=0.2, pass_=0.5)
        (folder / "token").write_text(control.token)
        subprocess.run([*self._command(), "enroll", "--token-file", str(folder / "token")], check=True, cwd=ROOT)
        self.process: subprocess.Popen[bytes] | None = None

    def configure(self, *, poll: float, pass_: float) -> None:
        text = CONFIG.format(url=self._url, folder=self._folder, socket=self._socket, poll=poll, pass_=pass_)
        (self._folder / "agent.toml").write_text(text)

    def start(self) -> psutil.Process:
        self.process = subprocess.Popen([*self._command(), "run"], cwd=ROOT)
        return psutil.Process(self.process.pid)

    def end(self, number: signal.Signals) -> int:
        assert self.process is not None
        os.kill(self.process.pid, number)
        return self.process.wait(10)

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "agent", "--config", str(self._folder / "agent.toml")]


@pytest.fixture
def agent(tmp_path: Path, control: FakeControlPlane, containers: Containers) -> Iterator[AgentProcess]:
    process = AgentProcess(tmp_path, control, containers)
    yield process
    if process.process is not None and process.process.poll() is None:
        process.end(signal.SIGKILL)


@pytest.mark.clause("AGT-11", "AGT-8")
@pytest.mark.case("P3")
def test_stopping_or_killing_the_agent_touches_no_container(
    agent: AgentProcess, control: FakeControlPlane, containers: Containers
):
    runtime = PodmanRuntime(str(containers.podman.socket))
    control.want("u1", score(service("api", containers.image("service")), init=service("m", containers.image("done"))))
    agent.start()
    wait_until(lambda: control.says("u1", "converged"), seconds=30, what="the deployment converges")
    before = {c.id: c.started_at for c in runtime.containers()}
    assert agent.end(signal.SIGTERM) == 0
    assert {c.id: c.started_at for c in runtime.containers()} == before

    agent.start()
    reports = len(control.reports)
    wait_until(lambda: len(control.reports) > reports + 2, seconds=10, what="reports go on")
    assert agent.end(signal.SIGKILL) == -signal.SIGKILL
    states = {c.name: c.state for c in runtime.containers()}
    assert states == {"api": State.RUNNING, "m": State.EXITED}
    assert {c.id: c.started_at for c in runtime.containers()} == before
    assert control.says("u1", "converged")


@pytest.mark.clause("AGT-14")
def test_ten_deployments_at_rest_are_light(agent: AgentProcess, control: FakeControlPlane, containers: Containers):
    control.secrets["db", "password"] = "hunter2"  # what encrypts the cache of values is weighed, too
    needs = [SecretEnvVar("DB_PASSWORD", SecretRef("db", "password"))]
    for number in range(10):
        api = service(f"api-{number}", containers.image("service"), secret_env=needs)
        control.want(f"u{number}", score(api), name=f"app-{number}")
    agent.start()

    def all_converged() -> bool:
        return all(control.says(f"u{number}", "converged") for number in range(10))

    wait_until(all_converged, seconds=90, what="ten deployments converge")
    agent.end(signal.SIGTERM)
    agent.configure(poll=10, pass_=30)
    measured = agent.start()
    reports = len(control.reports)
    wait_until(lambda: len(control.reports) > reports + 2, seconds=20, what="it is at rest")
    resident = measured.memory_info().rss / 1_000_000
    print(f"agent at rest with ten deployments: {resident:.1f} MB resident")
    assert resident < MOST_RESIDENT_MEGABYTES
    assert all_converged()
