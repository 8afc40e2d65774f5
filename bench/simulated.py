"""A release to many simulated devices while all of them poll and report over HTTP (R5, R6, E6).

How many is said by ``FLEET_BENCH_DEVICES``, 10,000 when it is not set. What is promised is that nothing goes wrong, so
errors end the measurement; the seconds are said beside it, because they are those of the machine, which has to run the
devices too.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from agent.config import Timing
from agent.control import TIMEOUT_SECONDS
from agent.engine import JITTER
from agent.wire.messages import DeploymentState
from bench import fleet as rows
from bench.figures import Figure
from bench.installation import Installation
from harness.waiting import wait_until
from rollouts.models import Deployment, Target
from simulation import enlisting, show
from simulation.fleet import Script, SimulatedFleet

DEVICES = int(os.environ.get("FLEET_BENCH_DEVICES", "10000"))
#: Slower than by default: two cores serve the devices, keep the database and run the devices themselves.
TIMING = Timing(poll_seconds=60, heartbeat_seconds=60, pass_seconds=60)
#: What passes without any load: a poll at its latest, the spread of pulls, the settle time and a look after it.
DEVICE_SECONDS = TIMING.poll_seconds * (1 + JITTER) + TIMING.pull_jitter_seconds + TIMING.settle_seconds + 1
MOST_SECONDS_TO_RELEASE = 60.0
MOST_SECONDS_OF_A_POLL = TIMEOUT_SECONDS[1]
THREADS = 32
ROLE = "crowd"
#: By digest, as in production; after the first device has resolved a tag, all others are told once more (DEP-18).
IMAGE = f"registry.example.com/app@sha256:{0:064}"
LIMIT_SECONDS = 1800.0
WORRYING = ("deadlock", "Traceback", "level=error", "database is locked")


def measure(installation: Installation) -> list[Figure]:
    """From apply to everybody told, and to everybody converged."""
    logging.getLogger("agent").setLevel(logging.ERROR)
    control_plane = installation.control_plane
    server = control_plane.web()
    control_plane.worker(concurrency=2)
    control_plane.beat()
    place = Path("/dev/shm")  # noqa: S108  (a folder with a random name is made in it)
    with tempfile.TemporaryDirectory(prefix="fleet-crowd-", dir=place if place.is_dir() else None) as folder:
        crowd = SimulatedFleet(
            Script(DEVICES, server, Path(folder), labels={"role": ROLE}, timing=TIMING, threads=THREADS)
        )
        return _released_to(crowd, installation)


def _released_to(crowd: SimulatedFleet, installation: Installation) -> list[Figure]:
    known = rows.named(crowd.script.names(), role=ROLE)
    for device, row, credential in zip(crowd.devices, known, rows.credentials(known), strict=True):
        device.adopt(str(row.uid), credential)
    stop, begin = threading.Event(), time.monotonic()
    crowd.schedule()
    threads = crowd.start(stop)
    try:
        _wait(lambda: all(device.agent.outbox.acknowledged for device in crowd.devices), "everybody has reported")
        say(f"the first report of all after {time.monotonic() - begin:.0f} s")
        told, converged = _watch(rows.applied("crowd", ROLE, IMAGE))
        _wait(lambda: crowd.count(DeploymentState.CONVERGED) == DEVICES, "all agents know that they have converged")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    say(show.summary(crowd, time.monotonic() - begin, _lost(crowd)))
    _check(crowd, installation)
    say(f"{crowd.meter.requests / (time.monotonic() - begin):.0f} requests/s on average")
    what = f"release to {DEVICES:,} devices that poll and report"
    slowest = crowd.meter.quantile("poll", 1)
    return [
        Figure(f"{what}: all released", told, MOST_SECONDS_TO_RELEASE, "s", 1, False, "limit"),
        Figure("all of them converged", converged, DEVICE_SECONDS, "s", 10, False, "the devices' own intervals"),
        Figure("the slowest of all their polls", slowest, MOST_SECONDS_OF_A_POLL, "s", 1, False, "limit of the agent"),
    ]


def _watch(deployment: Deployment) -> tuple[float, float]:
    """Seconds until all are released and until all have converged, as the control plane knows it."""
    begin = time.monotonic()
    targets = Target.objects.filter(revision__deployment=deployment)
    _wait(lambda: targets.filter(released_at__isnull=False).count() == DEVICES, "everybody is released")
    told = time.monotonic() - begin
    _wait(lambda: targets.filter(state="converged").count() == DEVICES, "everybody has converged")
    return told, time.monotonic() - begin


def _lost(crowd: SimulatedFleet) -> dict[str, str]:
    acknowledged = crowd.acknowledged()
    wait_until(lambda: not enlisting.behind(acknowledged), seconds=120, what="the inbox is read", every=1.0)
    return enlisting.behind(acknowledged)


def _check(crowd: SimulatedFleet, installation: Installation) -> None:
    """Nothing failed on either side; a request that is put off (429, 503) is an answer, not a failure."""
    worrying = installation.logged(*WORRYING)
    if crowd.meter.errors() or crowd.failures or worrying:
        raise RuntimeError(
            f"{crowd.meter.errors()} requests and {crowd.failures} agents failed: {crowd.meter.words}; "
            f"{len(worrying)} lines of logs are worrying: {worrying[:3]}"
        )


def _wait(condition: Callable[[], object], what: str) -> None:
    wait_until(condition, seconds=LIMIT_SECONDS, what=what, every=0.5)


def say(text: str) -> None:
    """For people; standard output is for the figures."""
    print(text, file=sys.stderr, flush=True)
