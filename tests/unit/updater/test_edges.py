"""What the updater does when its own surroundings are odd: releases, executors, machines that don't know their boot."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.updater import release
from agent.updater.executor import SystemUpgrade
from agent.updater.journal import Event, Record
from agent.updater.machine import MachineError
from agent.updater.server import Server
from agent.updater.service import Service
from agent.updater.updater import Release, Updater
from agent.version import VERSION
from agent.wire.messages import AttemptState
from tests.support.updater_socket import ask
from tests.support.updaters import UID, UpdatingDevice


@pytest.fixture
def path() -> Iterator[Path]:
    """Of a socket; short, because its address is."""
    with tempfile.TemporaryDirectory(prefix="fu-", dir="/tmp") as folder:
        yield Path(folder) / "s"


@pytest.mark.clause("SYS-2")
def test_the_clock_is_judged_by_when_this_release_was_built(tmp_path: Path) -> None:
    (tmp_path / "release.json").write_text(json.dumps({"version": "1.2.3", "built": 1_900_000_000, "formats": {}}))
    assert release.own(tmp_path) == Release(version="1.2.3", built=1_900_000_000.0)


@pytest.mark.parametrize("text", ["", "{", '{"built": "yesterday"}', '{"built": 0}'])
def test_without_a_readable_release_file_no_clock_before_this_source_is_sane(tmp_path: Path, text: str) -> None:
    (tmp_path / "release.json").write_text(text)
    assert release.own(tmp_path) == Release(version=VERSION, built=release.EARLIEST)


def test_an_attempt_of_another_executor_waits_for_a_release_that_has_it(device: UpdatingDevice) -> None:
    device.store.create(
        UID, Record(number=1, step="accepted", event=Event.ENDED, executor="later", state=AttemptState.ACCEPTED)
    )
    device.updater.work()
    assert device.standing() == "this release has no executor later"


def test_a_machine_that_does_not_know_its_boot_is_asked_again(
    device: UpdatingDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    device.begin()
    device.run_to("upgrade", "began")
    with monkeypatch.context() as lost:
        lost.setattr(device.machine, "boot_id", lost_boot)
        device.updater.work()
    assert device.standing() == "the kernel does not say its boot id"
    device.run()
    assert device.state is AttemptState.COMPLETED


def test_a_request_that_fails_ends_neither_the_server_nor_the_work(
    device: UpdatingDevice, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(path, device.updater.answer, allowed={os.geteuid()})
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        with monkeypatch.context() as lost:
            lost.setattr(device.machine, "boot_id", lost_boot)
            reply = ask(path, request="status")
        assert (reply["reason"], reply["message"]) == (
            "busy",
            "the updater could not answer, see its log: the kernel does not say its boot id",
        )
        assert ask(path, request="status")["reply"] == "status"
    finally:
        server.stop()
        thread.join(10)


def test_a_worker_that_cannot_go_on_ends_the_process_so_that_systemd_starts_it_anew(
    device: UpdatingDevice, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    updater = Updater(device.machine, device.store, [SystemUpgrade(device.machine)])
    monkeypatch.setattr(updater, "work", lambda: 1 / 0)
    service = Service(updater, Server(path, updater.answer, allowed={os.geteuid()}))
    assert not service.run()
    assert "ZeroDivisionError" in caplog.text
    assert not (path).exists()


def lost_boot() -> str:
    raise MachineError("the kernel does not say its boot id")
