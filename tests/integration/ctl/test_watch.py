"""``fleetctl watch``: a line on each change, and an exit code that says how it went. The test moves the clock."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from django.contrib.auth.models import User
from knox.models import AuthToken

from devices.models import Device
from fleet.ctl.client import Client
from fleet.ctl.commands.watch import watch
from fleet.ctl.config import Config
from fleet.ctl.errors import Exit, Refused
from fleet.ctl.watching import Timing
from harness.ports import free_port
from rollouts.models import Deployment
from rollouts.services import rollout_end
from tests.integration.ctl.cli import Fleetctl
from tests.integration.rollouts.world import World

pytestmark = pytest.mark.clause("API-2", "DEP-16")
PATH = "namespaces/default/deployments/api/"


class Story:
    """Time passes by what happens between two looks; nothing really sleeps."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self.seconds = 0.0
        self._steps = iter(steps)

    def timing(self, limit: float | None = 60) -> Timing:
        return Timing(limit, clock=lambda: self.seconds, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.seconds += seconds
        next(self._steps, lambda: None)()


@pytest.fixture
def server(stranger: Fleetctl) -> Client:
    _, token = AuthToken.objects.create(User.objects.create_superuser("ada"))
    return Client(Config(stranger.server, token))


@pytest.fixture
def rollout(world: World) -> Iterator[Deployment]:
    world.device("edge-1", canary=True)
    world.device("edge-2")
    return world.rollout()


def reports(world: World, rollout: Deployment, device: str, state: str, message: str = "") -> Callable[[], object]:
    def happen() -> None:
        world.says(Device.objects.get(name=device), rollout, state, message)
        world.drain()
        world.evaluate(rollout)

    return happen


def test_a_rollout_that_converges(
    server: Client, world: World, rollout: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    story = Story(
        lambda: None,
        reports(world, rollout, "edge-1", "progressing", "pulling the image"),
        reports(world, rollout, "edge-1", "converged"),
        reports(world, rollout, "edge-2", "converged"),
    )
    assert watch(server, PATH, story.timing()) == Exit.OK
    assert capsys.readouterr().out.splitlines() == [
        "generation 1: Canary, 0 of 2 converged, 1 released. "
        "Waiting for canary edge-1: has not reported on this revision yet",
        "  edge-1 (canary) released, online: has not reported on this revision yet",
        "  edge-2 held, online: waits for the canaries",
        "  edge-1 (canary) released, online: pulling the image",
        "generation 1: Releasing, 1 of 2 converged, 2 released. "
        "Waiting for edge-2: has not reported on this revision yet",
        "  edge-1 (canary) converged, online",
        "  edge-2 released, online: has not reported on this revision yet",
        "generation 1: Converged, 2 of 2 converged, 2 released",
        "  edge-2 converged, online",
    ]


def test_a_rollout_that_fails(
    server: Client, world: World, rollout: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    story = Story(reports(world, rollout, "edge-1", "failed", "image not found"))
    assert watch(server, PATH, story.timing()) == Exit.FAILED
    assert "Canary edge-1 failed: image not found" in capsys.readouterr().out


def test_a_rollout_that_somebody_ends(server: Client, rollout: Deployment) -> None:
    story = Story(lambda: rollout_end(deployment=rollout, actor=None))
    assert watch(server, PATH, story.timing()) == Exit.FAILED


def test_a_new_generation_is_followed(
    server: Client, world: World, rollout: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    def apply() -> None:
        world.rollout(world.manifest(image="registry.example.com/api:2.0"))

    story = Story(apply, reports(world, rollout, "edge-1", "converged"), reports(world, rollout, "edge-2", "converged"))
    assert watch(server, PATH, story.timing()) == Exit.OK
    assert "generation 2: Converged" in capsys.readouterr().out


def test_the_time_is_up(server: Client, rollout: Deployment) -> None:
    story = Story()
    with pytest.raises(Refused, match="not decided after 5 s: generation 1: Canary") as refused:
        watch(server, PATH, story.timing(5))
    assert refused.value.code == Exit.UNREACHABLE
    assert story.seconds == 5


def test_a_deployment_that_goes_away(server: Client, world: World, rollout: Deployment) -> None:
    def vanish() -> None:
        Deployment.objects.all().delete()

    with pytest.raises(Refused) as refused:
        watch(server, PATH, Story(vanish).timing())
    assert refused.value.code == Exit.NOT_FOUND


def test_a_server_that_is_away_is_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    nobody = Client(Config(f"http://127.0.0.1:{free_port()}", "token"))
    story = Story()
    with pytest.raises(Refused, match="there was no answer"):
        watch(nobody, PATH, story.timing(3))
    assert story.seconds == 3
    assert capsys.readouterr().out.count("the connection failed") == 1


def test_a_fleet_of_many_shows_those_that_are_not_done(
    server: Client, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.devices([f"edge-{number:03}" for number in range(80)])
    world.rollout()
    with pytest.raises(Refused):
        watch(server, PATH, Story().timing(0))
    assert len(capsys.readouterr().out.splitlines()) == 1 + 50


def test_on_a_terminal_there_is_a_table(
    server: Client,
    world: World,
    rollout: Deployment,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    story = Story(
        reports(world, rollout, "edge-1", "progressing", "\x1b]0;gotcha\x07pulling"),
        reports(world, rollout, "edge-1", "converged"),
        reports(world, rollout, "edge-2", "converged"),
    )
    assert watch(server, PATH, story.timing()) == Exit.OK
    shown = capsys.readouterr().out
    assert "\x1b[" in shown
    assert "DEVICE" in shown
    assert "\x1b]0;gotcha" not in shown
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert "Pending → Canary since 2026-12-01 14:00:00 UTC → Releasing → Converged\n" in text
    assert "Pending → Canary → Releasing → Converged since 2026-12-01 14:00:00 UTC\n" in text
    assert "━ 1/2\ngeneration 1: Releasing, 1 of 2 converged" in text


def test_on_a_terminal_a_failed_rollout_stands_alone(
    server: Client,
    world: World,
    rollout: Deployment,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    message = "image registry.example.com/api:1.0 is neither here nor in the registry, which says: manifest unknown"
    reports(world, rollout, "edge-1", "failed", message)()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    assert watch(server, PATH, Story().timing()) == Exit.FAILED
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().out)
    assert "Failed since 2026-12-01 14:00:00 UTC\n" in text
    assert "→" not in text
    assert f"Canary edge-1 failed: {message}" in " ".join(text.split()), "a long sentence is wrapped, not cut"


def test_the_program_follows_what_it_applies(fleetctl: Fleetctl, world: World, tmp_path: Path) -> None:
    world.device("edge-1")
    file = tmp_path / "api.yaml"
    file.write_text(yaml.safe_dump(world.manifest()))
    done = fleetctl("apply", "-f", str(file), "--watch", "--timeout", "0")
    assert done.code == 6
    assert done.lines[0] == "deployment default/api created: generation 1"
    assert done.lines[1].startswith("generation 1: Pending, 0 of 0 converged")
    assert done.stderr.startswith("fleetctl: not decided after 0 s")
    assert "\x1b" not in done.stdout
    deployment = Deployment.objects.get()
    world.evaluate(deployment)
    reports(world, deployment, "edge-1", "converged")()
    assert fleetctl("watch", "deployment", "api", "--timeout", "30").code == 0
    reports(world, deployment, "edge-1", "failed", "out of memory")()
    assert fleetctl("watch", "deployment", "api").code == 1
    assert fleetctl("watch", "deployment", "none").code == 3
