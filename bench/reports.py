"""How long a report takes to show in the status, under 100 reports a second, each with three deployments."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

import requests

from bench import fleet
from bench.figures import Figure
from bench.installation import Installation
from harness.waiting import wait_until
from rollouts.models import Deployment, Target

DEVICES = 200
RATE = 100
SECONDS = 15
SENDERS = 4
#: Every so many reports one says something new.
NEWS_EVERY = 20
LIMIT_SECONDS = 2.0


@dataclass
class Load:
    """The reports to send, and when the news among them were acknowledged."""

    server: str
    credentials: dict[str, str]
    uids: list[str]
    told: dict[str, float] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    sequence: dict[str, int] = field(default_factory=dict)

    def send(self, session: requests.Session, name: str, converged: bool) -> None:
        """One report; the first deployment converged or progressing, the others unchanged."""
        self.sequence[name] = self.sequence.get(name, 0) + 1
        states = ["converged" if converged else "progressing", "progressing", "progressing"]
        body = {
            "sequence": self.sequence[name],
            "facts": {"labels": {"role": "bench"}, "boot_id": "1"},
            "deployments": [
                {"uid": uid, "revision": 1, "state": state} for uid, state in zip(self.uids, states, strict=True)
            ],
        }
        headers = {"Authorization": f"Bearer {self.credentials[name]}"}
        reply = session.post(f"{self.server}/api/agent/v1/report", json=body, headers=headers, timeout=10)
        if reply.status_code != 200:
            self.errors.append(f"{name}: {reply.status_code}")
        elif converged and name not in self.told:
            self.told[name] = time.monotonic()


def measure(installation: Installation) -> list[Figure]:
    """The slowest of the news, from acknowledgement to the row that admin, API and CLI read."""
    control_plane = installation.control_plane
    server = control_plane.web()
    control_plane.worker()
    control_plane.beat()
    credentials = fleet.enrolled(DEVICES)
    deployments = [fleet.applied(f"reports-{number}", "bench") for number in range(3)]
    _wait_until_released(deployments)
    load = Load(server, credentials, [str(deployment.uid) for deployment in deployments])
    seen = _watch(load, deployments[0])
    if load.errors:
        raise RuntimeError(f"{len(load.errors)} reports were not taken: {load.errors[:3]}")
    slowest = max(seen[name] - told for name, told in load.told.items())
    return [
        Figure(
            f"slowest of {len(seen)} changes to show, at {RATE} reports/s",
            slowest,
            LIMIT_SECONDS,
            "s",
            1,
            False,
            "limit",
        )
    ]


def _wait_until_released(deployments: list[Deployment]) -> None:
    wanted = DEVICES * len(deployments)
    rows = Target.objects.filter(revision__deployment__in=deployments, state="released")
    wait_until(lambda: rows.count() == wanted, seconds=60, what="all targets are released")


def _watch(load: Load, deployment: Deployment) -> dict[str, float]:
    senders = [threading.Thread(target=_send, args=(load, number)) for number in range(SENDERS)]
    for sender in senders:
        sender.start()
    seen: dict[str, float] = {}
    rows = Target.objects.filter(revision__deployment=deployment, state="converged")
    deadline = time.monotonic() + SECONDS + 30
    while time.monotonic() < deadline and (any(s.is_alive() for s in senders) or len(seen) < len(load.told)):
        for name in rows.values_list("device_name", flat=True):
            seen.setdefault(name, time.monotonic())
        time.sleep(0.02)
    for sender in senders:
        sender.join()
    missing = sorted(set(load.told) - set(seen))
    if missing:
        raise RuntimeError(f"the change of {', '.join(missing[:5])} never showed")
    return seen


def _send(load: Load, number: int) -> None:
    names = sorted(load.credentials)[number::SENDERS]
    session = requests.Session()
    start = time.monotonic()
    for turn in range(RATE * SECONDS // SENDERS):
        time.sleep(max(0.0, start + turn * SENDERS / RATE - time.monotonic()))
        name = names[turn % len(names)]
        news = turn % NEWS_EVERY == number
        load.send(session, name, converged=news or name in load.told)
