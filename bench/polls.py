"""The idle poll against an empty view on the same kind of server: requests a second, by wrk, in turns."""

from __future__ import annotations

import re
import statistics
import subprocess

import requests

from bench import fleet
from bench.figures import Figure
from bench.installation import Installation
from harness.control_plane import ControlPlane
from harness.programs import program

SECONDS = 4
ROUNDS = 5
PATH = "/api/agent/v1/desired"


def measure(installation: Installation) -> list[Figure]:
    """Both servers have one worker; the rounds alternate, because the machine's speed drifts."""
    (credential,) = fleet.enrolled(1).values()
    headers = {"Authorization": f"Bearer {credential}"}
    ours = installation.control_plane.web()
    headers["If-None-Match"] = requests.get(ours + PATH, headers=headers, timeout=10).headers["ETag"]
    if requests.get(ours + PATH, headers=headers, timeout=10).status_code != 304:
        raise RuntimeError("the poll that is to be measured is not answered with 304")
    with ControlPlane(
        installation.folder / "floor", env=installation.control_plane.env, settings="bench.floor_settings"
    ) as empty:
        floor = empty.web()
        rates: dict[str, list[float]] = {ours: [], floor: []}
        for _ in range(ROUNDS):
            for server, found in rates.items():
                found.append(_rate(server + PATH, headers))
    return [
        Figure(
            "idle poll, authenticated, 304",
            statistics.median(rates[ours]),
            statistics.median(rates[floor]),
            "requests/s",
            0.5,
            True,
            "empty Django view, no middleware",
        )
    ]


def _rate(url: str, headers: dict[str, str]) -> float:
    command = [str(program("wrk")), "--threads", "1", "--connections", "4", "--duration", f"{SECONDS}s"]
    command += [part for name, value in headers.items() for part in ("--header", f"{name}: {value}")]
    done = subprocess.run([*command, url], capture_output=True, text=True, check=True)
    found = re.search(r"Requests/sec:\s+([0-9.]+)", done.stdout)
    if found is None or "Socket errors" in done.stdout:
        raise RuntimeError(f"wrk said: {done.stdout}")
    return float(found[1])
