"""How long it takes from an apply until the last of 2,000 waiting devices knows, and what holding them costs."""

from __future__ import annotations

import subprocess
import sys
import time

import msgspec
import psutil
import requests

from bench import fleet
from bench.crowd import Crowd, Told
from bench.figures import Figure
from bench.installation import Installation
from harness.control_plane import ROOT
from harness.waiting import wait_until

DEVICES = 2000
LIMIT_SECONDS = 5.0
LIMIT_BYTES = 250e6
IDLE_SECONDS = 20


def measure(installation: Installation) -> list[Figure]:
    """Two web processes, one that waits, one worker; the devices are in a process of their own."""
    control_plane = installation.control_plane
    web, waiting = control_plane.web(workers=2), control_plane.waiting()
    server = psutil.Process(control_plane.processes[-1].pid)
    control_plane.worker()
    control_plane.beat()
    crowd = Crowd(web, waiting, fleet.credentials(fleet.in_bulk(DEVICES)))
    command = [sys.executable, "-m", "bench.crowd"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as devices:
        try:
            _say(devices, crowd)
            wait_until(lambda: _held(waiting) == DEVICES, seconds=120, what="all devices wait", every=0.5)
            resident = _at_rest(server)
            applied_at = time.monotonic()
            fleet.applied("waiting", "bulk")
            told = msgspec.json.decode(_line(devices), type=Told)
        finally:
            devices.kill()
    print(f"the last one was told after {told.told_at - applied_at:.2f} s", file=sys.stderr)
    name = f"apply until the last of {DEVICES:,} waiting devices has its new state"
    return [
        Figure(name, told.polled_at - applied_at, LIMIT_SECONDS, "s", 1, False, "limit"),
        Figure(
            f"waiting process, {DEVICES:,} devices held, resident",
            resident / 1e6,
            LIMIT_BYTES / 1e6,
            "MB",
            1,
            False,
            "limit",
        ),
    ]


def _say(devices: subprocess.Popen[bytes], crowd: Crowd) -> None:
    if devices.stdin:
        devices.stdin.write(msgspec.json.encode(crowd) + b"\n")
        devices.stdin.flush()
    _line(devices)


def _line(devices: subprocess.Popen[bytes]) -> bytes:
    line = devices.stdout.readline() if devices.stdout else b""
    if not line:
        raise RuntimeError("the devices' process ended; it said why above")
    return line


def _held(waiting: str) -> int:
    return int(requests.get(f"{waiting}/readyz", timeout=10).json()["waiting"])


def _at_rest(server: psutil.Process) -> int:
    """Bytes resident; what it costs of a core is printed. The server has a process that works and one that watches."""
    processes = [server, *server.children(recursive=True)]
    before = _cpu(processes)
    time.sleep(IDLE_SECONDS)
    share = (_cpu(processes) - before) / IDLE_SECONDS
    print(f"holding {DEVICES:,} devices takes {share:.2%} of one core", file=sys.stderr)
    return sum(int(process.memory_info().rss) for process in processes)


def _cpu(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)
