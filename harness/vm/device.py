"""A machine that was set up as a device, and its updater, spoken to over the socket as the agent does."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path

import msgspec

from agent.updater import journal
from agent.wire.messages import AttemptState
from agent.wire.updater import (
    DEFAULT_SOCKET,
    MAX_REPLY_BYTES,
    SYSTEM_UPGRADE_V1,
    AnyReply,
    Begin,
    BeginAgentUpgrade,
    GetJournal,
    GetStatus,
    JournalPage,
    NoteContact,
    Request,
    Standing,
    UpdaterStatus,
)
from harness.process import NotReady
from harness.vm.nspawn import Machine
from harness.waiting import wait_until

UPDATER_UNIT = "harmony-fleet-updater.service"
RELEASE = "/root/release"
_OVER = frozenset(AttemptState) - {AttemptState.ACCEPTED, AttemptState.RUNNING}
#: apt, dpkg and a reboot on a machine that others use as well.
SECONDS = 120.0

_reply = msgspec.json.Decoder(AnyReply)


def unpack(archive: Path, machine: Machine) -> None:
    """Put a release's files where a person would unpack it, ready to run ``fleet-agent setup``."""
    target = machine.root / RELEASE.lstrip("/")
    target.mkdir(parents=True)
    command = ["tar", "--extract", "--gzip", "--file", str(archive), "--directory", str(target), "--strip-components=1"]
    subprocess.run(command, check=True)


class Device:
    """The updater inside ``machine``, and one attempt at a time."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.attempt = ""

    # The socket ----------------------------------------------------------------------------------------------------

    def ask(self, request: Request) -> AnyReply:
        """Ask the updater as root, who may do what the agent may.

        Raises:
            OSError: it does not listen.
            NotReady: the machine is off.
        """
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(self.machine.inside(DEFAULT_SOCKET)))
            connection.sendall(msgspec.json.encode(request) + b"\n")
            with connection.makefile("rb") as lines:
                return _reply.decode(lines.readline(MAX_REPLY_BYTES))

    def answers(self) -> bool:
        """Whether the updater listens."""
        with contextlib.suppress(OSError, NotReady, msgspec.DecodeError):
            return isinstance(self.ask(GetStatus()), UpdaterStatus)
        return False

    def intent(self, remaining_seconds: int) -> Begin | BeginAgentUpgrade:
        """What the current attempt is about."""
        return Begin(self.attempt, SYSTEM_UPGRADE_V1, remaining_seconds)

    def begin(self, *, remaining_seconds: int = 3600) -> AnyReply:
        """Offer it a new attempt, or the one it has again."""
        self.attempt = self.attempt or str(uuid.uuid4())
        wait_until(self.answers, seconds=SECONDS, what="the updater answers")
        return self.ask(self.intent(remaining_seconds))

    def post(self) -> None:
        """Offer it a new attempt, and don't wait for what it says."""
        self.attempt = str(uuid.uuid4())
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.machine.inside(DEFAULT_SOCKET)))
            connection.sendall(msgspec.json.encode(self.intent(3600)) + b"\n")

    def standing(self) -> Standing | None:
        """Where the attempt stands; ``None`` while nobody answers."""
        with contextlib.suppress(OSError, NotReady, msgspec.DecodeError):
            status = self.ask(GetStatus())
            if isinstance(status, UpdaterStatus):
                return next((one for one in status.attempts if one.attempt == self.attempt), None)
        return None

    def note_contact(self) -> None:
        """What the agent says once the control plane has acknowledged a report in this boot."""
        self.ask(NoteContact(self.machine.boot_id()))

    def entries(self) -> list[str]:
        """The attempt's journal as ``step event: message`` lines, in order."""
        page = self.ask(GetJournal(self.attempt))
        if not isinstance(page, JournalPage):
            raise TypeError(f"the updater answered with {page}")
        return [f"{entry.step} {entry.event}: {entry.message}" for entry in page.entries]

    # Waiting -------------------------------------------------------------------------------------------------------

    def wait_for(self, what: str, holds: Callable[[Standing], bool]) -> Standing:
        """Until something holds of the attempt.

        Raises:
            TimeoutError: with what the updater said meanwhile.
        """

        def found() -> list[Standing]:
            standing = self.standing()
            return [standing] if standing and holds(standing) else []

        try:
            return wait_until(found, seconds=SECONDS, what=what)[0]
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.machine.journal(UPDATER_UNIT)}") from None

    def wait_for_step(self, step: str) -> Standing:
        return self.wait_for(f"the attempt is at {step}", lambda found: found.step == step)

    def wait_for_end(self) -> Standing:
        """Until it is over or root has to help, doing what the agent does meanwhile: it asks again for time after a
        boot, and tells of its contact.
        """

        def is_over(found: Standing) -> bool:
            if found.needs_time:
                self.begin()
            elif found.step == "verify" and found.state is AttemptState.RUNNING:
                self.note_contact()
            return found.state in _OVER

        return self.wait_for("the attempt is over", is_over)

    # Blows ---------------------------------------------------------------------------------------------------------

    def updater_pid(self) -> int:
        """The updater's process, as this host counts."""
        shown = self.machine.run("systemctl", "show", "--property=MainPID", "--value", UPDATER_UNIT).stdout
        return self.machine.pid_outside(int(shown))

    def kill_updater(self) -> None:
        os.kill(self.updater_pid(), signal.SIGKILL)

    def journal_path(self) -> Path:
        """The attempt's journal on disk, read from outside."""
        folder = self.machine.root / "var/lib/harmony-fleet/updater/attempts"
        return next(folder.glob(f"*{self.attempt}.journal"))

    def freeze_at(self, step: str, event: str) -> bool:
        """Offer an attempt and stop the updater's process right after it wrote that record; whether it came no further.

        What stands still then is what a kill in that instant meets.
        """
        wait_until(self.answers, seconds=SECONDS, what="the updater answers")
        pid = self.updater_pid()
        self.post()
        wait_until(lambda: (step, event) in self._records(), seconds=SECONDS, what=f"{step} {event}", every=0)
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: _stands_still(pid), seconds=10, what="the updater stands still", every=0)
        return self._records()[-1] == (step, event)

    def _records(self) -> list[tuple[str, str]]:
        with contextlib.suppress(OSError, StopIteration):
            contents = journal.read(self.journal_path().read_bytes())
            return [(record.step, record.event.value) for record in contents.records]
        return []


def _stands_still(pid: int) -> bool:
    """Whether the signal has reached every thread."""
    tasks = Path(f"/proc/{pid}/task").glob("*/stat")
    return all(task.read_text().rpartition(")")[2].split()[0] == "T" for task in tasks)
