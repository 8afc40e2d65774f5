"""The updater's command lines and what it reads from them, with real apt and dpkg."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from agent.updater.debian import DebianMachine, commands
from agent.updater.machine import BOOT, ROOT, VAR, Job, MachineError
from harness.vm.packages import Package
from harness.waiting import wait_until
from tests.support.debians import SmallDebian

KIB = 1024


def _package(name: str, version: str, kib: int = 0, **fields: str) -> Package:
    return Package(name, version, fields={"Installed-Size": str(kib), **fields})


def _fetch_lists(debian: SmallDebian) -> None:
    done = debian.run(commands.JOBS[Job.UPDATE])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.clause("SYS-2")
def test_the_simulation_counts_packages_and_bytes_and_names_what_goes(
    debian: SmallDebian, machine: DebianMachine
) -> None:
    debian.install(_package("grows", "1", 10), _package("podman", "4"), _package("stays", "1"))
    debian.repository.publish(
        _package("grows", "2", 30, Depends="helper"),
        _package("helper", "7", 5, Conflicts="podman"),
        _package("stays", "1"),
    )
    _fetch_lists(debian)
    found = machine.simulation()
    archives = sum((debian.repository.folder / name).stat().st_size for name in ("grows_2_all.deb", "helper_7_all.deb"))
    assert (found.upgrades, found.installs, found.removes) == (1, 1, ("podman",))
    assert dict(found.needs) == {ROOT: (20 + 5 + 30) * KIB, VAR: archives, BOOT: 0}


def test_a_foreign_architecture_is_looked_up_as_such(debian: SmallDebian, machine: DebianMachine) -> None:
    def library(version: str, architecture: str, kib: int) -> Package:
        return _package("library", version, kib, Architecture=architecture, **{"Multi-Arch": "same"})

    debian.install(library("1", "amd64", 10), library("1", "i386", 20))
    debian.repository.publish(library("2", "amd64", 40), library("2", "i386", 90))
    _fetch_lists(debian)
    found = machine.simulation()
    assert found.upgrades == 2
    assert found.needs[ROOT] == (30 + 70 + 90) * KIB


@pytest.mark.clause("SYS-2")
@pytest.mark.case("U3")
def test_a_new_kernel_needs_what_the_largest_in_boot_has(debian: SmallDebian, machine: DebianMachine) -> None:
    writes = {"postinst": "# not for update-initramfs -u here\nif false; then update-initramfs -u; fi"}
    debian.install(Package("udev", "1", scripts=writes), _package("linux-image-amd64", "1"))
    for name, size in {
        "vmlinuz-6.1.0-1-amd64": 80,
        "initrd.img-6.1.0-1-amd64": 400,
        "vmlinuz-6.1.0-0-amd64": 70,
    }.items():
        (debian.root / "boot" / name).write_bytes(b"\0" * size)
    newest = _package("linux-image-amd64", "2", Depends="linux-image-6.1.0-2-amd64")
    debian.repository.publish(newest, _package("linux-image-6.1.0-2-amd64", "1"))
    _fetch_lists(debian)
    assert machine.simulation().needs[BOOT] == 480
    debian.repository.publish(newest, _package("linux-image-6.1.0-2-amd64", "1"), _package("udev", "2"))
    _fetch_lists(debian)
    assert machine.simulation().needs[BOOT] == 480 + 400, "udev writes the initial file system anew"


@pytest.mark.clause("SYS-1")
def test_an_upgrade_asks_nothing_and_keeps_the_configuration_of_the_device(debian: SmallDebian) -> None:
    def configured(version: str) -> Package:
        content = f"of version {version}\n".encode()
        files = {"etc/configured.conf": content, "DEBIAN/conffiles": b"/etc/configured.conf\n"}
        return Package("configured", version, files=files)

    with debian.configuration.open("a") as surprise:
        surprise.write('DPkg::Options { "--force-confnew"; "--force-confask"; };\nAPT::Get::Assume-No "true";\n')
    debian.install(configured("1"))
    path = debian.root / "etc/configured.conf"
    path.write_text("of the operator\n")
    debian.repository.publish(configured("2"))
    _fetch_lists(debian)
    done = debian.run(commands.JOBS[Job.UPGRADE])
    assert done.returncode == 0, done.stdout + done.stderr
    assert path.read_text() == "of the operator\n"
    assert path.with_name("configured.conf.dpkg-dist").read_text() == "of version 2\n"
    assert (debian.root / "usr/share/configured/version").read_text() == "2"


@pytest.mark.clause("SYS-1")
def test_lists_that_are_fetched_only_in_part_are_a_failure(debian: SmallDebian) -> None:
    good = f"deb [trusted=yes] file:{debian.repository.folder} ./"
    debian.sources(good, "deb [trusted=yes] http://127.0.0.1:9 ./")
    ours = debian.run(commands.JOBS[Job.UPDATE])
    assert ours.returncode == 100
    assert "Some index files failed to download" in ours.stderr
    lenient = [word for word in commands.JOBS[Job.UPDATE] if word != "--error-on=any"]
    assert debian.run(lenient).returncode == 0, "apt alone takes it for a success"


@pytest.mark.clause("SYS-2")
@pytest.mark.case("U1")
def test_a_package_whose_script_failed_is_named_and_the_repair_finishes_it(
    debian: SmallDebian, machine: DebianMachine, tmp_path: Path
) -> None:
    assert machine.package_problems() == ""
    mended = tmp_path / "mended"
    breaks = Package("breaks", "1", scripts={"postinst": f"[ -e {mended} ]"})
    assert debian.dpkg("--install", str(breaks.build(tmp_path))).returncode != 0
    assert "breaks" in machine.package_problems()
    mended.touch()
    configure = [commands.JOBS[Job.CONFIGURE][0], *_options(debian), *commands.JOBS[Job.CONFIGURE][1:]]
    assert debian.run(configure).returncode == 0
    assert debian.run(commands.JOBS[Job.FIX]).returncode == 0
    assert machine.package_problems() == ""


def _options(debian: SmallDebian) -> list[str]:
    return [f"--root={debian.root}", "--force-script-chrootless", "--log=/dev/null"]


@pytest.mark.clause("SYS-5")
@pytest.mark.case("U1")
def test_a_dpkg_that_was_killed_is_seen(debian: SmallDebian, machine: DebianMachine, tmp_path: Path) -> None:
    started, stop = tmp_path / "started", tmp_path / "stop"
    waits = f"touch {started}; while [ ! -e {stop} ]; do sleep 0.02; done"
    deb = Package("cut-off", "1", scripts={"postinst": waits}).build(tmp_path)
    command = ["/usr/bin/dpkg", *_options(debian), "--install", str(deb)]
    with subprocess.Popen(command, env={**commands.ENVIRONMENT}, stdout=subprocess.DEVNULL) as dpkg:
        try:
            wait_until(started.exists, seconds=20, what="the maintainer script runs")
            assert machine.lock_holder() == f"dpkg (process {dpkg.pid})"
        finally:
            dpkg.send_signal(signal.SIGKILL)
            stop.touch()
    assert machine.lock_holder() == ""
    assert "cut-off" in machine.package_problems()


def test_a_journal_that_dpkg_left_behind_is_seen(debian: SmallDebian, machine: DebianMachine) -> None:
    debian.install(_package("whole", "1"))
    (debian.root / "var/lib/dpkg/updates/tmp.i").touch()
    assert machine.package_problems() == "", "dpkg makes this file ahead of need"
    (debian.root / "var/lib/dpkg/updates/0001").write_text("")
    assert "dpkg was interrupted" in machine.package_problems()


@pytest.mark.clause("SYS-2")
def test_a_simulation_that_apt_refuses_says_why(debian: SmallDebian, machine: DebianMachine) -> None:
    debian.install(_package("alone", "1"))
    status = debian.root / "var/lib/dpkg/status"
    status.write_text(status.read_text().replace("Package: alone\n", "Package: alone\nDepends: nothing-there\n"))
    with pytest.raises(MachineError, match=r"(?s)apt-get --simulate ended with exit code 100: .*nothing-there"):
        machine.simulation()


@pytest.mark.clause("SYS-4")
def test_the_expected_kernel_follows_the_order_of_dpkg_and_what_is_installed(
    debian: SmallDebian, machine: DebianMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "running_kernel", lambda: "6.1.0-9-cloud-amd64")
    assert machine.expected_kernel() is None
    names = ["6.1.0-9-cloud-amd64", "6.1.0-10-cloud-amd64", "6.12-rc1-cloud-amd64", "6.12.1+deb13-amd64"]
    debian.install(*(_package(f"linux-image-{name}", "1") for name in names))
    assert machine.expected_kernel() == "6.12-rc1-cloud-amd64"
    debian.dpkg("--purge", "linux-image-6.12-rc1-cloud-amd64")
    assert machine.expected_kernel() == "6.1.0-10-cloud-amd64"


def test_a_program_that_is_not_there_or_hangs_is_named() -> None:
    with pytest.raises(MachineError, match="/nowhere/dpkg could not be run: No such file"):
        commands.output(["/nowhere/dpkg"])
    with pytest.raises(MachineError, match=r"/bin/sleep 9 took more than 0\.1 seconds"):
        commands.output(["/bin/sleep", "9"], limit_seconds=0.1)


@pytest.mark.clause("SYS-5")
@pytest.mark.case("U1")
def test_a_database_that_dpkg_cannot_read_is_not_clean_so_that_root_is_asked_for(
    debian: SmallDebian, machine: DebianMachine
) -> None:
    """It would stay unreadable however often it is asked, and the attempt would stay open for ever."""
    (debian.root / "var/lib/dpkg/status").write_bytes(b"Package: a\nSta\0\0\0\0")
    assert "dpkg: error: parsing file" in machine.package_problems()
