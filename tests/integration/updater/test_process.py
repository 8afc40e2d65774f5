"""``fleet-updater`` as a process: its commands, its signals, and what stays when it is killed."""

from __future__ import annotations

import getpass
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.version import VERSION
from harness.waiting import wait_until
from tests.support.command import ROOT, Done, run
from tests.support.updater_socket import ask
from tests.support.updaters import OTHER, UID

CONFIG = """\
[updater]
agent_user = "{user}"
state_dir = "{folder}/state"
socket = "{folder}/s"
[machine]
kind = "simulated"
[machine.pace]
update = 0.1
upgrade = {upgrade}
repair = 0.1
boot = 0.1
[machine.simulated]
"""


@dataclass
class Device:
    """``main`` runs a command to its end; :meth:`start` begins ``run``."""

    folder: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        return self.folder / "s"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def configure(self, more: str = "", *, upgrade: float = 0.1) -> None:
        text = CONFIG.format(user=getpass.getuser(), folder=self.folder, upgrade=upgrade)
        (self.folder / "updater.toml").write_text(text + more)

    def main(self, *arguments: str) -> Done:
        return run("agent.updater", self._arguments(*arguments), env=os.environ)

    def start(self, **env: str) -> None:
        with (self.folder / "log").open("ab") as log:
            command = [sys.executable, "-m", "agent.updater", *self._arguments("run")]
            self.process = subprocess.Popen(command, cwd=ROOT, stderr=log, env={**os.environ, **env})
        wait_until(self.socket.exists, seconds=20, what="the socket is there")

    def end(self, number: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(20)

    def begin(self, uid: str = UID) -> dict[str, Any]:
        return ask(self.socket, request="begin", attempt=uid, executor="systemUpgradeV1", remaining_seconds=60)

    def standing(self) -> dict[str, Any]:
        return dict(ask(self.socket, request="journal", attempt=UID)["standing"])

    def wait_for(self, **expected: str) -> None:
        wait_until(lambda: expected.items() <= self.standing().items(), seconds=20, what=f"the attempt is {expected}")

    def _arguments(self, *arguments: str) -> list[str]:
        return ["--config", str(self.folder / "updater.toml"), *arguments]


@pytest.fixture
def device() -> Iterator[Device]:
    with tempfile.TemporaryDirectory(prefix="fu-", dir="/tmp") as folder:
        device = Device(Path(folder))
        device.configure()
        yield device
        if device.process is not None and device.process.poll() is None:
            device.process.kill()
            device.process.wait()


@pytest.mark.clause("SYS-1")
@pytest.mark.clause("SYS-3")
def test_an_attempt_from_accepted_to_verified(device: Device) -> None:
    device.start()
    assert device.begin()["state"] == "accepted"
    device.wait_for(step="verify")
    ask(device.socket, request="contact", boot_id=ask(device.socket, request="status")["boot_id"])
    device.wait_for(state="completed")
    assert device.end() == 0
    assert not device.socket.exists()
    assert f"attempt {UID}: verify completed: Verified: kernel" in device.log
    shown = device.main("journal").lines
    assert shown[0] == f"attempt {UID} (systemUpgradeV1): completed"
    assert [line for line in shown if line.startswith("--- boot ")] != []
    assert shown[1].endswith("accepted ended: systemUpgradeV1 may begin within 60 seconds")
    entries = [json.loads(line) for line in device.main("journal", "--json", UID).lines]
    assert [entry["number"] for entry in entries] == list(range(1, len(entries) + 1))


@pytest.mark.clause("SYS-5")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_updater_that_ends_in_the_transaction_goes_on_when_it_is_back(device: Device, number: int) -> None:
    device.configure(upgrade=2.0)
    device.start()
    device.begin()
    device.wait_for(step="upgrade")
    device.end(number)
    assert device.main("status").lines[0].startswith("updater: does not run")
    device.socket.unlink(missing_ok=True)
    device.start()
    device.wait_for(step="verify")


@pytest.mark.clause("SYS-6")
def test_root_repairs_while_the_updater_runs(device: Device) -> None:
    device.configure('exit_codes = { upgrade = 100 }\nunclean = ""\n')
    device.start()
    device.begin()
    device.wait_for(state="repair-required")
    assert device.begin(OTHER)["reason"] == "repair-required"
    status = device.main("status").lines
    assert status[:2] == ["updater: runs", "no attempt is taken on until root runs: fleet-updater repair"]
    repaired = device.main("repair")
    assert (repaired.code, repaired.lines[-2]) == (
        0,
        "repaired: every package is fully installed; attempts are taken on again",
    )
    assert device.standing()["state"] == "failed"
    assert device.begin(OTHER)["state"] == "accepted"


def test_two_updaters_never_work_with_the_same_folder(device: Device) -> None:
    device.start()
    second = device.main("run")
    assert (second.code, second.stderr) == (
        1,
        f"fleet-updater: another fleet-updater works with {device.folder}/state; stop it first\n",
    )
    assert ask(device.socket, request="status")["reply"] == "status"


def test_systemd_hears_when_it_is_ready(device: Device) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(device.folder / "notify"))
        systemd.settimeout(20)
        device.start(NOTIFY_SOCKET=str(device.folder / "notify"))
        assert systemd.recv(100) == b"READY=1"


def test_a_device_without_attempts_says_so(device: Device) -> None:
    assert device.main("version").stdout == f"{VERSION}\n"
    assert device.main("status").lines == [
        "updater: does not run; see: systemctl status harmony-fleet-updater",
        "no attempt is known",
    ]
    asked = device.main("journal", UID)
    assert (asked.code, asked.stderr) == (1, f"fleet-updater: no attempt {UID} is known here; known: none\n")
    assert device.main("repair").stdout == "no attempt needs repair; see: fleet-updater status\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[updater]\nsoket = "/run/x"\n', 'line 2: updater.soket: unknown key; did you mean "socket"?'),
        ('[updater]\nstate_dir = "x"\n', "line 2: updater.state_dir: is 'x'; allowed: text like ^/"),
        ('[machine]\nkind = "windows"\n', "line 2: machine.kind: is 'windows'; allowed: text like"),
        (
            '\n[updater]\nagent_user = "nobody-knows"\n',
            'line 3: updater.agent_user: this device has no user "nobody-knows"; run: fleet-agent setup',
        ),
        ("updater", "is not TOML"),
    ],
)
def test_a_wrong_configuration_is_named_by_line_and_key(device: Device, text: str, complaint: str) -> None:
    (device.folder / "updater.toml").write_text(text)
    done = device.main("run")
    assert done.code == 2
    assert done.stderr.startswith(f"fleet-updater: {device.folder}/updater.toml: ")
    assert complaint in done.stderr
