"""The Debian that disposable machines are made of: bootstrapped once, kept outside the checkout, never booted."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness.programs import program

#: systemd and what a device needs before ``fleet-agent setup``; the rest of Debian would only cost time.
PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "udev", "iproute2", "procps", "ca-certificates", "apt-utils"),
    *("libpam-systemd", "dbus-user-session", "passwd"),
    *("podman", "crun", "conmon", "netavark", "aardvark-dns", "uidmap", "slirp4netns", "fuse-overlayfs", "iptables"),
)
#: Wait for a network that is there at once, ask questions at a console, or call apt behind a test's back.
MASKED = (
    *("systemd-networkd-wait-online.service", "systemd-firstboot.service", "systemd-resolved.service"),
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer"),
)
#: Containers inside a container: no keyring, no cgroups of their own.
CONTAINERS = """\
[containers]
keyring = false
cgroups = "disabled"

[engine]
runtime = "crun"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a tree is made of; another recipe, or another week's Debian, is another tree."""

    suite: str = "bookworm"
    packages: tuple[str, ...] = PACKAGES
    architecture: str = "amd64"

    def key(self, now: datetime) -> str:
        """Name of the tree's folder."""
        what = repr((self, MASKED, CONTAINERS)).encode()
        return f"{self.suite}-{now:%G-%V}-{hashlib.sha256(what).hexdigest()[:12]}"


def cache() -> Path:
    """Where trees are kept: outside the checkout, so that a fresh clone needn't bootstrap again."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "harmony-fleet" / "vm"


def tree(recipe: Recipe) -> Path:
    """The tree of this recipe, bootstrapped when there is none; never to be written to. Needs root.

    Raises:
        RuntimeError: it could not be bootstrapped; the message has the end of the log.
    """
    folder = cache()
    folder.mkdir(parents=True, exist_ok=True)
    wanted = folder / recipe.key(datetime.now(UTC))
    with _alone(folder / f"{recipe.suite}.lock"):
        if not wanted.exists():
            _remove_older(folder, recipe.suite)
            _bootstrap(recipe, wanted)
    return wanted


def mirror() -> str:
    """Where this host gets Debian from, by its own configuration.

    Raises:
        RuntimeError: apt has no source.
    """
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=True,
    )
    sites = [site for site in done.stdout.splitlines() if "security" not in site and site.startswith("http")]
    if not sites:
        raise RuntimeError("apt on this host has no source of Debian packages, so no machine can be bootstrapped")
    return sites[0]


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_older(folder: Path, suite: str) -> None:
    for old in [*folder.glob(f"{suite}-*"), *folder.glob(f".{suite}-*")]:
        shutil.rmtree(old, ignore_errors=True)


def _bootstrap(recipe: Recipe, wanted: Path) -> None:
    unfinished = wanted.with_name(f".{wanted.name}")
    log = wanted.with_name(f"{recipe.suite}.log")
    command = [str(program("debootstrap")), "--variant=minbase", f"--arch={recipe.architecture}"]
    command += [f"--include={','.join(recipe.packages)}", recipe.suite, str(unfinished), mirror()]
    with log.open("wb") as output:
        code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False).returncode
    if code:
        raise RuntimeError(f"debootstrap ended with code {code}:\n{log.read_text(errors='replace')[-2000:]}")
    _prepare(unfinished)
    unfinished.rename(wanted)


def _prepare(root: Path) -> None:
    """What is the same for every machine made of this tree."""
    in_tree = ["chroot", str(root)]
    subprocess.run([*in_tree, "apt-get", "clean"], check=True)
    subprocess.run([*in_tree, "systemctl", "--quiet", "enable", "systemd-networkd"], check=True)
    subprocess.run([*in_tree, "systemctl", "--quiet", "mask", *MASKED], check=True)
    (root / "etc/machine-id").write_text("")
    (root / "etc/containers").mkdir(exist_ok=True)
    (root / "etc/containers/containers.conf").write_text(CONTAINERS)
    (root / "etc/resolv.conf").unlink(missing_ok=True)
