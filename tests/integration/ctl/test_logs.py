"""``fleetctl logs`` (AGT-16)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connections

from agent.wire.messages import LogReply
from devices.models import Connectivity, Device
from harness.waiting import wait_until
from rollouts import services
from rollouts.models import LogRequest
from tests.integration.ctl.cli import Fleetctl
from tests.integration.rollouts.world import World

pytestmark = pytest.mark.clause("API-2", "AGT-16")


@contextmanager
def answering(device: Device, **reply: object) -> Iterator[None]:
    """The device answers the next request, as its agent would, while the command waits."""

    def answer() -> None:
        try:
            wait_until(LogRequest.objects.exists, seconds=30, what="somebody asks")
            uid = str(LogRequest.objects.values_list("uid", flat=True).get())
            services.logs_answer(device_id=device.pk, reply=LogReply(request=uid, **reply))  # type: ignore[arg-type]
        finally:
            connections.close_all()

    thread = threading.Thread(target=answer)
    thread.start()
    yield
    thread.join(40)
    LogRequest.objects.all().delete()


def test_the_text_is_printed_without_what_would_steer_the_terminal(fleetctl: Fleetctl, world: World) -> None:
    device = world.device("edge-1")
    world.rollout()
    with answering(device, text="started\n\x1b[31mred\x07\tcafé\n", is_cut=True):
        done = fleetctl("logs", "api", "--tail", "5")
    assert (done.code, done.stdout) == (0, "started\n�[31mred�\tcafé\n")
    assert "the beginning is cut off" in done.stderr
    with answering(device, text=""):
        done = fleetctl("logs", "default/api", "-d", "edge-1", "-c", "api")
    assert (done.code, done.stdout) == (0, "")
    assert "the log of api on edge-1 is empty" in done.stderr


def test_a_script_learns_by_the_code_why_there_is_no_text(fleetctl: Fleetctl, world: World) -> None:
    device, away = world.devices(["edge-1", "edge-2"])
    world.goes(away, Connectivity.OFFLINE)
    world.rollout()
    done = fleetctl("logs", "api")
    assert (done.code, done.stdout) == (1, "")
    assert "say which, such as edge-1, edge-2" in done.stderr
    with answering(device, problem="no container api is here"):
        done = fleetctl("logs", "api", "--device", "edge-1")
    assert done.code == 1
    assert "edge-1 could not read the log: no container api is here" in done.stderr
    done = fleetctl("logs", "api", "--device", "edge-2", "--timeout", "0")
    assert done.code == 6
    assert "Waiting for edge-2: offline since 14:00 UTC" in done.stderr
    assert fleetctl("logs", "none").code == 3
    assert fleetctl("logs", "api", "--device", "edge-1", "--tail", "0").code == 2
