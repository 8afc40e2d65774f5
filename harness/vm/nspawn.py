"""Disposable Debian machines with systemd, in a few seconds: systemd-nspawn over a tree that stays as it is.

They have no kernel of their own and can't set the clock; what depends on that is shown with qemu.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.process import ManagedProcess, NotReady
from harness.programs import program
from harness.vm.network import lay
from harness.waiting import wait_until

#: nspawn's way to say that the machine wants to be started again.
REBOOT = 133
BOOT_SECONDS = 90
_NETWORK = """\
[Match]
Name=host0

[Network]
Address={guest}/30
LinkLocalAddressing=no
"""


class Machine:
    """One machine; a context manager that leaves nothing behind. ``root`` is its file system, readable at any time.

    ``layers`` are folders that together are its file system, the uppermost first; what it writes goes into a layer of
    its own, :attr:`written`. A reboot inside starts it again, with another boot id. Except :meth:`run`, its methods are
    for one thread.
    """

    def __init__(self, layers: Sequence[Path], folder: Path) -> None:
        self.name = f"hf{secrets.token_hex(4)}"
        self.root = folder / "root"
        self.cable = lay(self.name)
        self.boots = 0
        self.written = folder / "written"
        self._layers = layers
        self._folder = folder
        self._console = folder / "console.log"
        self._nspawn: ManagedProcess | None = None
        self._is_wanted = threading.Event()
        self._turn = threading.Lock()
        self._keeper: threading.Thread | None = None

    def __enter__(self) -> Machine:
        self._mount()
        return self

    def __exit__(self, *exception: object) -> None:
        self.power_off()
        subprocess.run(["umount", "--lazy", str(self.root)], check=False)
        shutil.rmtree(self._folder / "work", ignore_errors=True)

    # Power ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Turn it on and wait until systemd has started everything.

        Raises:
            TimeoutError: it did not come up; the message has the end of its console.
        """
        self._is_wanted.set()
        started = threading.Event()
        self._keeper = threading.Thread(target=self._keep_running, args=(started,), name=self.name, daemon=True)
        self._keeper.start()
        started.wait(BOOT_SECONDS)
        self.wait_until_up()

    def wait_until_up(self, *, boots: int | None = None) -> None:
        """Until it runs, and (``boots``) has been started that many times.

        Raises:
            TimeoutError: with the end of its console.
        """
        try:
            wait_until(
                lambda: self.boots >= (boots or 1) and self._is_up(), seconds=BOOT_SECONDS, what=f"{self.name} is up"
            )
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.console()}") from None

    def wait_until_off(self) -> None:
        """Until it has turned itself off.

        Raises:
            TimeoutError: with the end of its console.
        """
        try:
            wait_until(lambda: self._nspawn is None or not self._nspawn.running, seconds=BOOT_SECONDS, what="is off")
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.console()}") from None

    def cut_power(self) -> None:
        """All its processes are gone at once. What it had written but not flushed is still there, unlike on a disk."""
        self._is_wanted.clear()
        with contextlib.suppress(ProcessLookupError, NotReady):
            os.kill(self._leader(), signal.SIGKILL)
        self._wait_for_end()

    def power_off(self) -> None:
        """Off, whatever it was doing."""
        self.cut_power()

    def _keep_running(self, started: threading.Event) -> None:
        while self._is_wanted.is_set():
            nspawn = ManagedProcess(self.name, self._command(), log=self._console)
            with self._turn:
                self._nspawn = nspawn
                nspawn.start(self.cable.exists)
                self.cable.attach()
                self.boots += 1
            started.set()
            if nspawn.wait() != REBOOT:
                return

    def _wait_for_end(self) -> None:
        if self._keeper is not None:
            self._keeper.join(BOOT_SECONDS)
            self._keeper = None
        if self._nspawn is not None:
            self._nspawn.kill()
            self._nspawn = None

    def _command(self) -> list[str]:
        flags = ["--boot", "--register=no", "--keep-unit", "--network-veth", "--console=pipe", "--quiet"]
        # For Podman inside: its own mounts, networks and keyrings.
        rights = ["--capability=all", "--system-call-filter=@keyring"]
        return [str(program("systemd-nspawn")), "-D", str(self.root), f"--machine={self.name}", *flags, *rights]

    # Inside --------------------------------------------------------------------------------------------------------

    def run(self, *command: str, check: bool = True, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a command as root inside; nothing is read from a terminal.

        Raises:
            RuntimeError: it ended with another code than 0 and ``check`` is set; has its output.
            subprocess.TimeoutExpired: after ``seconds``.
        """
        inside = ["nsenter", "--target", str(self._leader()), "--mount", "--uts", "--ipc", "--net", "--pid", "--"]
        done = subprocess.run(
            [*inside, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"},
        )
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode} inside:\n{done.stdout}{done.stderr}")
        return done

    def boot_id(self) -> str:
        return self.run("cat", "/proc/sys/kernel/random/boot_id").stdout.strip()

    def pid_outside(self, pid: int) -> int:
        """What this host calls the machine's process of that number.

        Raises:
            NotReady: there is none.
        """
        for folder in Path("/proc").glob("[0-9]*"):
            if _pids(int(folder.name))[1:] == [str(pid)] and self._is_inside(folder):
                return int(folder.name)
        raise NotReady(f"{self.name} has no process {pid}")

    def _is_inside(self, process: Path) -> bool:
        with contextlib.suppress(OSError):
            return (process / "ns/pid").readlink() == Path(f"/proc/{self._leader()}/ns/pid").readlink()
        return False

    def journal(self, unit: str) -> str:
        """What a unit said, over all boots."""
        return self.run("journalctl", "--no-pager", "--output=cat", f"--unit={unit}", check=False).stdout

    def console(self) -> str:
        """The end of what it wrote while it started."""
        return self._nspawn.tail() if self._nspawn else ""

    def _is_up(self) -> bool:
        with contextlib.suppress(NotReady, subprocess.TimeoutExpired):
            state = self.run("systemctl", "is-system-running", check=False, seconds=10).stdout.strip()
            return state in ("running", "degraded")
        return False

    def _leader(self) -> int:
        """The machine's process 1, as this host counts.

        Raises:
            NotReady: it does not run.
        """
        if self._nspawn is None or not self._nspawn.running:
            raise NotReady(f"{self.name} is off")
        for child in _children(self._nspawn.pid):
            if _pids(child)[-1:] == ["1"]:
                return child
        raise NotReady(f"{self.name} has no process 1 yet")

    def _mount(self) -> None:
        work = self._folder / "work"
        for folder in (self.written, work, self.root):
            folder.mkdir(parents=True)
        layers = f"lowerdir={':'.join(map(str, self._layers))},upperdir={self.written},workdir={work}"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, str(self.root)], check=True)
        (self.root / "etc/hostname").write_text(f"{self.name}\n")
        network = self.root / "etc/systemd/network/10-host0.network"
        network.parent.mkdir(parents=True, exist_ok=True)
        network.write_text(_NETWORK.format(guest=self.cable.guest))

    def inside(self, path: str) -> Path:
        """A path of the running machine, as it sees it itself: also what is mounted or lives in ``/run``.

        Raises:
            NotReady: it is off.
        """
        return Path(f"/proc/{self._leader()}/root") / path.lstrip("/")


def _children(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        yield from map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def _pids(pid: int) -> list[str]:
    """The process's id in each of its namespaces, outermost first."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return line.split()[1:]
    return []


def small_disk(machine: Machine, target: str, size: str) -> None:
    """A file system of its own at ``target``, empty after each boot; the machine is off."""
    with (machine.root / "etc/fstab").open("a") as fstab:
        fstab.write(f"tmpfs {target} tmpfs size={size} 0 0\n")
    (machine.root / target.lstrip("/")).mkdir(parents=True, exist_ok=True)
