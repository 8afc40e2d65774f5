"""Deployments, and containers as they may be found, for tests of the plan."""

from __future__ import annotations

from dataclasses import replace

from agent.reconcile import labels
from agent.reconcile.labels import Owner
from agent.reconcile.memory import Memory
from agent.reconcile.plan import Plan, Seen, Settings, plan
from agent.reconcile.wanted import Wanted, resolve
from agent.runtime.base import Container, State
from agent.wire.manifest import PodmanV0
from agent.wire.messages import DeploymentDocument
from tests.support.fake_control import service

NOW = 1_796_000_000.0
OWNER = Owner("device-uid", b"k" * 32)
SETTINGS = Settings(settle_seconds=10)
MIGRATE = service("migrate", "r.example/migrate:1")
API = service("api", "r.example/api:1", ports=["8080:80"])
WEB = service("web", "r.example/web:1", ports=["8081:80"])
JOB = service("job", "r.example/job:1", restart_policy="on-failure:3")


def wanted(data: PodmanV0, **pins: str) -> Wanted:
    images = {reference.replace("_", "/"): digest for reference, digest in pins.items()}
    return resolve(
        DeploymentDocument(uid="u1", namespace="lab", name="app", revision=1, score=data, images=images), OWNER
    )


def running_as_wanted(target: Wanted) -> list[Container]:
    """What is there when all is well."""
    found = []
    for number, item in enumerate(target.containers):
        is_init = item.role == labels.INIT
        found.append(
            Container(
                id=f"id-{number}",
                name=item.name,
                state=State.EXITED if is_init else State.RUNNING,
                image_id=f"image-{item.name}",
                labels=dict(item.spec.labels),
                ports=item.spec.ports,
                started_at=NOW - 100,
                finished_at=NOW - 90 if is_init else 0.0,
            )
        )
    return found


def digests(containers: list[Container]) -> dict[str, tuple[str, ...]]:
    return {c.image_id: (f"sha256:{c.image_id}",) for c in containers}


def look(target: Wanted, containers: list[Container], memory: Memory | None = None, **options: object) -> Plan:
    seen = Seen(tuple(containers), digests(containers))
    now = options.pop("now", NOW)
    return plan(target, seen, memory or Memory(), options.pop("settings", SETTINGS), now=now, **options)  # type: ignore[arg-type]


def changed(containers: list[Container], name: str, **changes: object) -> list[Container]:
    return [replace(c, **changes) if c.name == name else c for c in containers]  # type: ignore[arg-type]
