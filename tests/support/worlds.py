"""One device whose agent is killed and started again: what it shall have, and what it must come to in the end."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agent.runtime.base import Container, State
from agent.runtime.podman import PodmanRuntime
from agent.wire.manifest import EnvVar, PodmanV0, Volume
from harness.waiting import wait_until
from tests.support.fake_control import FakeControlPlane, score, service
from tests.support.lives import AgentLives
from tests.support.podman import Containers, start_containers
from tests.support.turnstile import Turnstile, before_control_plane, before_podman

CONFIG = """\
[server]
url = "{url}"
wait = false
[device]
id = "edge-1"
[agent]
state_dir = "{folder}/state"
poll_seconds = 0.2
heartbeat_seconds = 0.5
pass_seconds = 0.3
settle_seconds = 0.1
pull_jitter_seconds = 0
[runtime]
socket = "{folder}/gate.sock"
"""
#: Of the state folder, beside those that end in ``.json``; a file that is just being written is there for a moment.
PLAIN_FILES = {"credential", "device.key", "documents", "lock"}


@dataclass
class World:
    """One device with its Podman and control plane, a turnstile before each, and what it shall have just now."""

    folder: Path
    containers: Containers
    control: FakeControlPlane
    podman_gate: Turnstile
    control_gate: Turnstile
    lives: AgentLives
    uids: Iterator[str] = field(default_factory=lambda: (f"u{number}" for number in itertools.count()))
    uid: str = ""
    revision: int = 0

    @property
    def runtime(self) -> PodmanRuntime:
        return PodmanRuntime(str(self.containers.podman.socket))

    def wanted(self) -> PodmanV0:
        """Revisions differ in one service; the init leaves a line in a file for each of its runs."""
        image = self.containers.image
        web = service("web", image("service"), env=[EnvVar("REVISION", str(self.revision))])
        init = service("migrate", image("noting"), volumes=[Volume(str(self.folder / "data"), "/data")])
        return score(service("api", image("service")), web, init=init)

    def begin(self, transition: str) -> None:
        """Come to where this transition begins; costs nothing when the test before ended there."""
        if transition == "rollout" and self.uid:
            self.go("removal")
        elif transition != "rollout" and not self.uid:
            self.go("rollout")

    def want(self, transition: str) -> None:
        """The control plane wants what the transition leads to."""
        (self.folder / "data/runs").unlink(missing_ok=True)
        if transition == "rollout":
            self.uid, self.revision = next(self.uids), 1
        if transition == "update":
            self.revision += 1
        if transition == "removal":
            self.control.remove(self.uid)
        else:
            self.control.want(self.uid, self.wanted(), revision=self.revision)

    def go(self, transition: str) -> None:
        """The whole transition with nothing in its way."""
        self.want(transition)
        self.live()
        self.expect(transition)

    def live(self) -> None:
        """The agent runs, in this life or a new one."""
        if not self.lives.is_alive():
            self.lives.start()

    def recover(self) -> None:
        """After a test that failed: nothing is armed, nothing runs, nothing is wanted."""
        self.lives.kill()
        for gate in (self.podman_gate, self.control_gate):
            gate.disarm()
        self.containers.podman.remove_containers()
        self.control.items.clear()
        self.control.version += 1
        self.uid = ""

    def expect(self, transition: str) -> None:
        """The end of the transition, whatever happened on the way."""
        if transition == "removal":
            self._expect_state("removed")
            assert self.runtime.containers() == []
            self.control.drop(self.uid)
            self.uid = ""
        else:
            self._expect_state("converged")
            self._expect_containers()
        self._expect_sound_files()

    def _expect_state(self, state: str) -> None:
        def reached() -> bool:
            if not self.lives.is_alive() or not self.control.says(self.uid, state):
                return False
            return self.control.last(self.uid).revision == self.revision or state == "removed"

        wait_until(reached, seconds=30, what=f"{self.uid} is {state} in revision {self.revision}")

    def _expect_containers(self) -> None:
        found = {container.name: self._inspected(container.id) for container in self.runtime.containers()}
        assert {name: c.state for name, c in found.items()} == {
            "migrate": State.EXITED,
            "api": State.RUNNING,
            "web": State.RUNNING,
        }
        assert len(self.runtime.containers()) == 3
        assert found["migrate"].exit_code == 0
        assert found["migrate"].finished_at <= found["web"].started_at
        assert set((self.folder / "data/runs").read_text().split()) == {"ran"}
        shown = self.containers.podman.cli("inspect", "--format", "{{json .Config.Env}}", "web")
        assert f'"REVISION={self.revision}"' in shown

    def _expect_sound_files(self) -> None:
        """None was set aside, and none is left half written."""
        assert [problem.reason for problem in self.control.reports[-1].problems] == []
        state = self.folder / "state"
        wait_until(
            lambda: {path.name for path in state.rglob("*") if path.suffix != ".json"} == PLAIN_FILES,
            seconds=5,
            what=f"{state} has nothing but what belongs there",
        )

    def _inspected(self, container_id: str) -> Container:
        seen = self.runtime.inspect(container_id)
        assert seen is not None
        return seen

    def ids(self) -> dict[str, str]:
        return {container.name: container.id for container in self.runtime.containers()}


@contextmanager
def start_world(folder: Path) -> Iterator[World]:
    """A world whose device is enrolled and has nothing; keep the path of ``folder`` short, a socket lies in it."""
    with (
        start_containers(["service", "noting"]) as containers,
        FakeControlPlane() as control,
        before_podman(containers.podman.socket, folder / "gate.sock") as podman_gate,
        before_control_plane(control.url) as (control_gate, url),
    ):
        (folder / "data").mkdir()
        (folder / "agent.toml").write_text(CONFIG.format(url=url, folder=folder))
        (folder / "token").write_text(control.token)
        lives = AgentLives(folder / "agent.toml")
        lives.enrol(folder / "token")
        try:
            yield World(folder, containers, control, podman_gate, control_gate, lives)
        finally:
            lives.kill()
