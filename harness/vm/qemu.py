"""A disposable Debian with a kernel of its own, under qemu without hardware help: slow, and nearer to a real device.

The harness plays the boot loader: at every start it reads kernel and initial file system out of the disk, from where
Debian's own links lead to. Commands run over a port that only this host reaches.
"""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.ports import free_port
from harness.process import ManagedProcess
from harness.programs import program
from harness.waiting import wait_until

#: This host's loopback, as the guest sees it.
HOST = "10.0.2.2"
PORT = 7000
BOOT_SECONDS = 300.0
_SOCKET = f"[Socket]\nListenStream={PORT}\nAccept=yes\n\n[Install]\nWantedBy=sockets.target\n"
_SHELL = "[Service]\nExecStart=-/bin/sh\nStandardInput=socket\nStandardOutput=socket\nStandardError=socket\n"
_NETWORK = "[Match]\nName=eth0\n\n[Network]\nDHCP=ipv4\n"


class Failed(RuntimeError):
    """A command ended with another code than 0 inside; the message has its output."""


def prepare(root: Path) -> None:
    """Make a tree ready to run under qemu: a network, and the port for commands."""
    units = root / "etc/systemd/system"
    (units / "harness.socket").write_text(_SOCKET)
    (units / "harness@.service").write_text(_SHELL)
    (units / "sockets.target.wants").mkdir(exist_ok=True)
    (units / "sockets.target.wants/harness.socket").symlink_to("../harness.socket")
    (root / "etc/systemd/network/10-eth0.network").write_text(_NETWORK)
    (root / "etc/fstab").write_text("/dev/vda / ext4 defaults 0 1\n")


def make_disk(root: Path, disk: Path, *, gigabytes: int = 4) -> None:
    command = [str(program("mke2fs")), "-q", "-t", "ext4", "-d", str(root), str(disk), f"{gigabytes}G"]
    subprocess.run(command, check=True, capture_output=True)


@dataclass(frozen=True, slots=True)
class Start:
    """How one start differs from an ordinary one: another ``kernel`` release, or a battery clock that is wrong."""

    kernel: str = ""
    clock: str = ""


class Qemu:
    """One machine; a context manager. ``disk`` is written to."""

    def __init__(self, disk: Path, folder: Path) -> None:
        self.console = folder / "console.log"
        self.starts = 0
        self._disk = disk
        self._folder = folder
        self._port = free_port()
        self._process: ManagedProcess | None = None

    def __enter__(self) -> Qemu:
        return self

    def __exit__(self, *exception: object) -> None:
        self.cut_power()

    def start(self, how: Start = Start()) -> None:
        """Turn it on and wait until it takes commands.

        Raises:
            TimeoutError: it did not come up; see its console.
        """
        self.starts += 1
        kernel, initrd = self._load(how.kernel)
        append = "root=/dev/vda rw console=ttyS0 net.ifnames=0 quiet"
        words = ["-accel", "tcg", "-m", "1024", "-smp", "2", "-nographic", "-no-reboot", "-kernel", str(kernel)]
        words += ["-initrd", str(initrd), "-append", append, "-drive", f"file={self._disk},if=virtio,format=raw"]
        words += ["-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{self._port}-:{PORT}"]
        words += [
            "-device",
            "virtio-net-pci,netdev=net",
            "-serial",
            f"file:{self.console}.{self.starts}",
            "-monitor",
            "none",
        ]
        words += ["-rtc", f"base={how.clock}"] if how.clock else []
        self._process = ManagedProcess(
            "qemu", [str(program("qemu-system-x86_64")), *words], log=self._folder / "qemu.log"
        )
        self._process.start(self._answers, seconds=BOOT_SECONDS)

    def wait_for_reboot(self, how: Start = Start(), *, seconds: float) -> None:
        """Until it reboots by itself, then start it again.

        Raises:
            TimeoutError: it did not.
        """
        process = self._process
        wait_until(
            lambda: process is None or not process.running, seconds=seconds, what="the machine reboots", every=0.5
        )
        self.start(how)

    def cut_power(self) -> None:
        """Gone at once; what it had not flushed is lost or not, as the host's cache has it."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def run(self, *command: str, check: bool = True, seconds: float = 300) -> str:
        """Run a command as root; its output, with what it complained.

        Raises:
            Failed: it ended with another code than 0 and ``check`` is set.
        """
        with socket.create_connection(("127.0.0.1", self._port), timeout=seconds) as connection:
            connection.sendall(f"{shlex.join(command)} </dev/null; code=$?\necho; echo code=$code\n".encode())
            connection.shutdown(socket.SHUT_WR)
            text = b"".join(_parts(connection)).decode(errors="replace")
        output, _, code = text.rpartition("\ncode=")
        if check and code.strip() != "0":
            raise Failed(f"{shlex.join(command)} ended with {code.strip() or 'no code'}:\n{output}")
        return output.rstrip("\n")

    def _answers(self) -> bool:
        try:
            return self.run("systemctl", "is-system-running", check=False, seconds=20) in ("running", "degraded")
        except OSError:
            return False

    def _load(self, release: str) -> tuple[Path, Path]:
        kernel = f"/boot/vmlinuz-{release}" if release else self._link("/vmlinuz")
        initrd = f"/boot/initrd.img-{release}" if release else self._link("/initrd.img")
        return self._dump(kernel, "vmlinuz"), self._dump(initrd, "initrd.img")

    def _link(self, path: str) -> str:
        found = re.search(r'Fast link dest: "([^"]+)"', self._debugfs(f"stat {path}"))
        if found is None:
            raise RuntimeError(f"{path} on the disk leads to no kernel")
        return f"/{found[1].lstrip('/')}"

    def _dump(self, path: str, name: str) -> Path:
        target = self._folder / name
        target.unlink(missing_ok=True)
        self._debugfs(f"dump {path} {target}")
        if not target.exists() or not target.stat().st_size:
            raise RuntimeError(f"{path} is not on the disk")
        return target

    def _debugfs(self, request: str) -> str:
        command = [str(program("debugfs")), "-R", request, str(self._disk)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _parts(connection: socket.socket) -> Iterator[bytes]:
    while part := connection.recv(65_536):
        yield part


@contextmanager
def chrooted(root: Path) -> Iterator[list[str]]:
    """Words that run a command in a tree, with what packages' scripts expect to be mounted."""
    mounted: list[Path] = []
    try:
        for source, target in (("proc", "proc"), ("sysfs", "sys"), ("devtmpfs", "dev")):
            subprocess.run(["mount", "-t", source, source, str(root / target)], check=True)
            mounted.append(root / target)
        yield ["chroot", str(root)]
    finally:
        for place in reversed(mounted):
            subprocess.run(["umount", "--lazy", str(place)], check=False)
