"""A Podman of its own beside the host's: own storage, network, settings and API socket, gone without a trace.

For the demo and for tests. Needs Debian's ``podman`` and ``runc``; as root ``netavark`` too, as an ordinary user
``uidmap``, ``slirp4netns`` and ids of its own in ``/etc/subuid``; ``build`` needs ``busybox-static``. The settings suit
hosts without systemd and with cgroups in hybrid layout too.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_CONTAINERS_CONF = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
"""
#: Only root makes bridges; without root Podman takes slirp4netns.
_BRIDGE_CONF = """\
[network]
network_backend = "netavark"
network_config_dir = "{networks}"
default_network = "{bridge}"
"""
_STORAGE_CONF = """\
[storage]
driver = "overlay"
graphroot = "{root}"
runroot = "{run}"
"""
_INSECURE = '[[registry]]\nprefix = "{name}"\nlocation = "{address}"\ninsecure = true\n'
_APPLETS = ("sh", "sleep", "httpd", "cat", "echo", "ls", "true", "false", "touch", "mkdir", "date", "test", "id")


class IsolatedPodman:
    """Podman's API service over ``folder``; a context manager that leaves no process, mount, bridge or file.

    ``stand_ins`` answers for a registry's name with another address, so that a manifest runs as it is written:
    ``{"registry.example.com": "127.0.0.1:5000"}``. Keep the path of ``folder`` short: the API socket lies in it, and
    the kernel allows a socket path of 107 bytes.

    Raises:
        FileNotFoundError: when Podman is not installed.
        TimeoutError: when its service does not answer in time; the message has the end of its log.
    """

    def __init__(
        self,
        folder: Path,
        *,
        insecure_registries: Sequence[str] = (),
        stand_ins: Mapping[str, str] | None = None,
    ) -> None:
        program = shutil.which("podman")
        if program is None:
            raise FileNotFoundError("podman is not installed; on Debian: apt-get install podman runc netavark")
        self._program = program
        self.folder = folder
        self.socket = folder / "api.sock"
        self._root, self._run, self._tmp = folder / "root", folder / "run", folder / "tmp"
        self._user_run = folder / "user"
        self._is_rootless = os.geteuid() != 0
        self._service: subprocess.Popen[bytes] | None = None
        self._bridge = f"fl{secrets.token_hex(4)}"
        self._subnet = f"10.{128 + secrets.randbelow(64)}.{secrets.randbelow(256)}"
        self._namespaces: set[str] = set()
        self._containers: set[str] = set()
        self._write_settings({address: address for address in insecure_registries} | dict(stand_ins or {}))

    @property
    def url(self) -> str:
        """The address of the API, as clients take it."""
        return f"unix://{self.socket}"

    @property
    def database(self) -> Path:
        """Where Podman keeps what it knows of containers; an older copy of it makes storage entries into ghosts."""
        return self._root / "libpod/bolt_state.db"

    def __enter__(self) -> IsolatedPodman:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # The service ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the API service and wait until it answers."""
        for folder in (self._root, self._run, self._tmp, self._user_run):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.socket.unlink(missing_ok=True)
        with (self.folder / "service.log").open("ab") as log:
            self._service = subprocess.Popen(
                [*self._command(), "system", "service", "--time=0", self.url],
                stdout=log,
                stderr=log,
                env=self._environment(),
                start_new_session=True,
            )
        self._wait_until_it_answers()

    def stop_service(self) -> None:
        """Kill the API service alone; containers go on, as they do when its unit is restarted."""
        service, self._service = self._service, None
        if service is None:
            return
        inner = [pid for pid, line in _processes() if f"system service --time=0 {self.url}" in line]  # without root: 2
        for pid in inner:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        service.kill()
        service.wait()

    def lose_power(self) -> None:
        """What a power cut leaves: every process gone, all that was in memory forgotten. Call :meth:`start` after."""
        self._note_kernel_objects()
        self.stop_service()
        self._kill_containers()
        self._release_kernel_objects()
        for folder in (self._tmp, self._run, self._user_run):
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Remove everything: containers, processes, mounts, bridge, folder. Safe to call twice and after a failure."""
        if self._root.exists():
            self._note_kernel_objects()
            with contextlib.suppress(RuntimeError, subprocess.SubprocessError):
                self.remove_containers()
            self._remove_storage()
        self.stop_service()
        self._kill_containers()
        self._release_kernel_objects()
        subprocess.run(["ip", "link", "delete", self._bridge], capture_output=True, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def remove_containers(self, attempts: int = 5) -> None:
        """Remove all containers at once; one that is just restarting refuses, so it is tried again.

        Raises:
            RuntimeError: when the last attempt failed too.
        """
        for attempt in range(1, attempts + 1):
            try:
                self.cli("rm", "--all", "--force", "--time", "0", timeout=60)
            except RuntimeError:
                if attempt == attempts:
                    raise
                time.sleep(0.2)
            else:
                return

    def cli(self, *arguments: str, timeout: float = 120) -> str:
        """Run a Podman command on this storage; its standard output.

        Raises:
            RuntimeError: when it fails; the message has the command and what Podman said.
        """
        done = subprocess.run(
            [*self._command(), *arguments],
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"podman {' '.join(arguments)} failed ({done.returncode}): {done.stderr.strip()}")
        return done.stdout

    # Images --------------------------------------------------------------------------------------------------------

    def build(
        self,
        reference: str,
        *,
        command: Sequence[str],
        env: dict[str, str] | None = None,
        health: Sequence[str] = (),
    ) -> None:
        """An image that holds busybox only and runs ``command``; ``env`` makes images that differ in digest."""
        context = self.folder / f"build-{secrets.token_hex(4)}"
        _write_busybox(context / "bin")
        lines = ["FROM scratch", "COPY bin /bin", "ENV PATH=/bin"]
        lines += [f"ENV {name}={json.dumps(value)}" for name, value in (env or {}).items()]
        lines += [f"HEALTHCHECK CMD {json.dumps(list(health))}"] if health else []
        lines += [f"CMD {json.dumps(list(command))}"]
        (context / "Containerfile").write_text("\n".join(lines) + "\n")
        try:
            self.cli("build", "--quiet", "--format", "docker", "--tag", reference, str(context))
        finally:
            shutil.rmtree(context)

    def push(self, reference: str) -> str:
        """Push an image to its registry; the digest that the registry knows it by (``sha256:…``)."""
        digest_file = self.folder / f"digest-{secrets.token_hex(4)}"
        try:
            self.cli("push", "--quiet", "--digestfile", str(digest_file), reference)
            return digest_file.read_text().strip()
        finally:
            digest_file.unlink(missing_ok=True)

    # Inside --------------------------------------------------------------------------------------------------------

    def _command(self) -> list[str]:
        places = {
            "--root": self._root,
            "--runroot": self._run,
            "--tmpdir": self._tmp / "libpod",
            "--volumepath": self._root / "volumes",
            "--network-config-dir": self.folder / "networks",
        }
        return [self._program, *(part for flag, place in places.items() for part in (flag, str(place)))]

    def _environment(self) -> dict[str, str]:
        own = {"HOME": str(self.folder), "XDG_RUNTIME_DIR": str(self._user_run)} if self._is_rootless else {}
        return (
            os.environ
            | own
            | {
                "CONTAINERS_CONF": str(self.folder / "containers.conf"),
                "CONTAINERS_REGISTRIES_CONF": str(self.folder / "registries.conf"),
                "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
                "REGISTRY_AUTH_FILE": str(self.folder / "auth.json"),
                "TMPDIR": str(self.folder / "transfer"),
            }
        )

    def _write_settings(self, registries: Mapping[str, str]) -> None:
        networks = self.folder / "networks"
        networks.mkdir(parents=True, exist_ok=True)
        (self.folder / "transfer").mkdir(exist_ok=True)
        bridge = "" if self._is_rootless else _BRIDGE_CONF.format(networks=networks, bridge=self._bridge)
        (self.folder / "containers.conf").write_text(_CONTAINERS_CONF + bridge)
        (self.folder / "storage.conf").write_text(_STORAGE_CONF.format(root=self._root, run=self._run))
        (self.folder / "registries.conf").write_text(
            "".join(_INSECURE.format(name=name, address=address) for name, address in registries.items())
        )
        (self.folder / "auth.json").write_text("{}")
        (networks / f"{self._bridge}.json").write_text(json.dumps(_network(self._bridge, self._subnet)))

    def _wait_until_it_answers(self, seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(seconds)
                connection.connect(str(self.socket))
                connection.sendall(b"GET /_ping HTTP/1.0\r\nHost: podman\r\n\r\n")
                if connection.recv(64).startswith(b"HTTP/1.0 200"):
                    return
            time.sleep(0.05)
        log = (self.folder / "service.log").read_text(errors="replace")[-2000:]
        raise TimeoutError(f"podman did not answer on {self.socket} within {seconds:.0f} s; its log: {log}")

    def _note_kernel_objects(self) -> None:
        """Remember what lies outside of our folder and outlives a power cut: namespaces, cgroups, runc's notes."""
        with contextlib.suppress(RuntimeError, subprocess.SubprocessError):
            containers = self.cli("ps", "--all", "--quiet", "--no-trunc", timeout=30).split()
            self._containers.update(containers)
            if containers:
                found = self.cli("inspect", "--format", "{{.NetworkSettings.SandboxKey}}", *containers, timeout=30)
                self._namespaces.update(line for line in found.splitlines() if line.startswith("/run/netns/"))

    def _remove_storage(self) -> None:
        """Without root some of it belongs to ids that only the user namespace may touch."""
        if self._is_rootless:
            with contextlib.suppress(RuntimeError, subprocess.SubprocessError):
                self.cli("unshare", "rm", "-rf", str(self._root), str(self._run))

    def _kill_containers(self) -> None:
        """Kill the monitors of our containers and all below them; a container's own processes show no path of ours."""
        monitors = [pid for pid, line in _processes() if str(self.folder) in line and "conmon" in line]
        family = [pid for monitor in monitors for pid in (monitor, *_descendants(monitor))]
        family += self._keeper()
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and any(_is_alive(pid) for pid in family):
            time.sleep(0.02)

    def _keeper(self) -> list[int]:
        """Without root a process that does nothing keeps the user namespace, and the mounts in it."""
        try:
            return [int((self._tmp / "libpod/pause.pid").read_text())]
        except (OSError, ValueError):
            return []

    def _release_kernel_objects(self) -> None:
        if self._is_rootless:
            return  # they went with the namespaces
        below = [place for place in _mounts() if place.startswith(f"{self.folder}/") or place in self._namespaces]
        for place in sorted(below, key=len, reverse=True):
            subprocess.run(["umount", "--lazy", place], capture_output=True, check=False)
        for place in self._namespaces:
            Path(place).unlink(missing_ok=True)
        self._namespaces.clear()
        for container in self._containers:
            for cgroup in Path("/sys/fs/cgroup").glob(f"*/libpod_parent/libpod-*{container}*"):
                with contextlib.suppress(OSError):
                    cgroup.rmdir()
            shutil.rmtree(f"/run/runc/{container}", ignore_errors=True)
        for table in ("nat", "filter"):
            _drop_firewall_rules(table, self._subnet)


def _network(bridge: str, subnet: str) -> dict[str, object]:
    """A network with its own name, bridge and subnet: firewall chains are named after the network's name."""
    return {
        "name": bridge,
        "id": secrets.token_hex(32),
        "driver": "bridge",
        "network_interface": bridge,
        "created": "2026-01-01T00:00:00Z",
        "subnets": [{"subnet": f"{subnet}.0/24", "gateway": f"{subnet}.1"}],
        "ipv6_enabled": False,
        "internal": False,
        "dns_enabled": False,
        "ipam_options": {"driver": "host-local"},
    }


def _drop_firewall_rules(table: str, subnet: str) -> None:
    """Remove the rules and chains that Podman left for a subnet because it had no time to."""
    rules = [shlex.split(line) for line in _iptables(table, "-S").splitlines() if line.startswith("-A")]
    ours = [rule for rule in rules if any(word.startswith(f"{subnet}.") for word in rule)]
    chains = {rule[1] for rule in ours if re.fullmatch(r"NETAVARK-(DN-)?[0-9A-F]{8,}", rule[1])}
    for rule in rules:
        if rule[-1] in chains or (rule in ours and rule[1] not in chains):
            _iptables(table, "-D", *rule[1:])
    for action in ("-F", "-X"):
        for chain in chains:
            _iptables(table, action, chain)


def _iptables(table: str, *arguments: str) -> str:
    program = shutil.which("iptables")
    if program is None:
        return ""
    command = [program, "-w", "-t", table, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _write_busybox(folder: Path) -> None:
    program = shutil.which("busybox")
    if program is None:
        raise FileNotFoundError("busybox is not installed; on Debian: apt-get install busybox-static")
    folder.mkdir(parents=True)
    shutil.copy(program, folder / "busybox")
    for applet in _APPLETS:
        (folder / applet).symlink_to("busybox")


def _processes() -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                yield int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def _descendants(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from _descendants(int(child))


def _is_alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def _mounts() -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split()[4].replace("\\040", " ") for line in lines]
