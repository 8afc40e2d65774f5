"""A release to many devices while all of them poll and report, on real web servers and workers (R5, R6, E6)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.config import Timing
from devices.models import DesiredItem, Device
from harness.control_plane import ControlPlane
from harness.waiting import wait_until
from rollouts.models import Phase, Target
from simulation import enlisting
from simulation.fleet import Script, SimulatedFleet
from tests.integration.rollouts.world import World

DEVICES = 120
#: Faster than real ones, so that polls and reports meet the release; all begin at once (E6).
TIMING = Timing(poll_seconds=2, heartbeat_seconds=4, pass_seconds=60, settle_seconds=0, pull_jitter_seconds=1)
WORRYING = ("Traceback", "level=error", "deadlock", "database is locked")


@contextmanager
def running(fleet: SimulatedFleet) -> Iterator[None]:
    """All devices begin at once, and end with the block."""
    stop = threading.Event()
    with enlisting.admitted(fleet.script.names(), group="lab") as token:
        fleet.enrol(token, stop=stop)
    fleet.schedule(within=0)
    threads = fleet.start(stop)
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.slow
@pytest.mark.database(transaction=True)
@pytest.mark.case("R5", "R6", "E6")
def test_a_release_while_everybody_polls_and_reports_loses_nothing(
    control_plane: ControlPlane, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "agent")
    server = control_plane.web()
    control_plane.worker(concurrency=2)
    control_plane.beat()
    fleet = SimulatedFleet(Script(DEVICES, server, tmp_path / "devices", labels={"role": "analyzer"}, timing=TIMING))
    world = World()
    with running(fleet):
        # Not only acknowledged: a device whose labels are still in the inbox would come too late for the freeze.
        known = Device.objects.filter(labels__role="analyzer")
        wait_until(lambda: known.count() == DEVICES, seconds=60, what="everybody's labels are known", every=0.2)
        deployment = world.apply().deployment
        assert deployment is not None
        wait_until(
            lambda: world.revision(deployment).phase == Phase.CONVERGED,
            seconds=120,
            what="everybody has converged",
            every=0.5,
        )
    assert not list(Target.objects.exclude(state="converged").values_list("device_name", "state", "message"))
    assert DesiredItem.objects.count() == DEVICES
    assert (fleet.meter.errors(), fleet.failures) == (0, 0), fleet.meter.words
    wait_until(lambda: not enlisting.behind(fleet.acknowledged()), seconds=30, what="every report is taken in")
    assert not logged(control_plane)


def logged(control_plane: ControlPlane) -> list[str]:
    lines = [line for log in control_plane.folder.glob("*.log") for line in log.read_text().splitlines()]
    return [line for line in lines if any(word in line for word in WORRYING)]
