"""What apt's own words are taken for, and what space an upgrade needs by them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.updater.debian.simulation import (
    Boot,
    Change,
    Installed,
    Outcome,
    Sizes,
    candidate_sizes,
    installed,
    outcome,
    simulated,
)
from agent.updater.machine import BOOT, ROOT, VAR

SAID = """\
NOTE: This is only a simulation!
      apt-get needs root privileges for real execution.
Reading package lists...
Calculating upgrade...
The following packages will be REMOVED:
  podman
2 upgraded, 1 newly installed, 1 to remove and 0 not upgraded.
Remv podman [4.3.1+ds1-8+deb12u1] []
Purg old-thing [1]
Inst libc6:i386 [2.36-9+deb12u4] (2.36-9+deb12u10 Debian:12.11/stable, Debian-Security:12/stable-security [i386]) []
Inst libc6 [2.36-9+deb12u4] (2.36-9+deb12u10 Debian:12.11/stable [amd64]) [libc6:i386 ]
Inst linux-image-6.1.0-37-amd64 (6.1.140-1 Debian:12.11/stable [amd64])
Inst made-here [1] (2 localhost [all])
Conf libc6 (2.36-9+deb12u10 Debian:12.11/stable [amd64])
"""
MIB = 1024 * 1024
NO_BOOT = Boot()


def test_a_simulation_is_read_with_architectures_and_removals() -> None:
    assert outcome(SAID) == Outcome(
        changes=(
            Change("libc6:i386", "2.36-9+deb12u10", "2.36-9+deb12u4", "i386"),
            Change("libc6", "2.36-9+deb12u10", "2.36-9+deb12u4", "amd64"),
            Change("linux-image-6.1.0-37-amd64", "6.1.140-1", "", "amd64"),
            Change("made-here", "2", "1", "all"),
        ),
        removes=("podman", "old-thing"),
    )


NAMES = st.from_regex(r"[a-z0-9][a-z0-9+.-]{1,12}", fullmatch=True)
VERSIONS = st.from_regex(r"(?:[1-9]:)?[0-9][0-9A-Za-z.+~-]{0,12}", fullmatch=True)
ARCHITECTURES = st.sampled_from(["amd64", "arm64", "all"])
CHANGES = st.builds(Change, NAMES, VERSIONS, VERSIONS | st.just(""), ARCHITECTURES)


def _printed(change: Change) -> str:
    old = f" [{change.old}]" if change.old else ""
    return f"Inst {change.printed}{old} ({change.new} Some:1/stable [{change.architecture}]) []"


@given(st.lists(CHANGES, unique_by=lambda change: change.printed), st.lists(NAMES, unique=True))
def test_whatever_apt_prints_in_its_form_is_read_back(changes: list[Change], removes: list[str]) -> None:
    lines = [f"Remv {name} [1]" for name in removes] + [_printed(change) for change in changes]
    assert outcome("\n".join(lines)) == Outcome(tuple(changes), tuple(removes))


@given(st.text() | st.lists(st.sampled_from([*SAID.splitlines(), "Inst", "Inst ", "Inst a (", "Remv"])).map("\n".join))
def test_odd_words_raise_nothing_and_name_no_odd_packages(text: str) -> None:
    found = outcome(text)
    for name in (*found.removes, *(change.name for change in found.changes)):
        assert name
        assert not name.startswith("-"), "it would be taken for an option"
    candidate_sizes(text)
    installed(text)


def test_sizes_are_bytes_and_the_largest_of_several_versions_counts() -> None:
    shown = """\
Package: libc6
Version: 2
Architecture: amd64
Installed-Size: 100
Description: a library
 Size: 999999
Size: 70

Package: libc6
Architecture: amd64
Installed-Size: 90
Size: 80

Package: libc6
Architecture: i386
Installed-Size: many
Size: ٣
"""
    assert candidate_sizes(shown) == {("libc6", "amd64"): Sizes(80, 102_400), ("libc6", "i386"): Sizes()}


def test_only_what_is_wholly_installed_counts_as_installed() -> None:
    text = "installed podman amd64 100\nconfig-files old amd64 7\nhalf-configured x all 1\ninstalled y all \n\nodd\n"
    assert installed(text) == [Installed("podman", "amd64", 102_400), Installed("y", "all", 0)]


def _needs(
    *changes: Change, sizes: dict[str, Sizes], old: list[Installed] | None = None, boot: Boot = NO_BOOT
) -> dict[str, int]:
    new = {(name, "amd64"): size for name, size in sizes.items()}
    return dict(simulated(Outcome(changes), new, old or [], boot).needs)


def _up(name: str, old: str = "1") -> Change:
    return Change(name, "2", old, "amd64")


@pytest.mark.clause("SYS-2")
def test_what_grows_and_one_old_self_need_space_and_what_shrinks_gives_none() -> None:
    sizes = {"grows": Sizes(10, 500), "shrinks": Sizes(20, 300), "new": Sizes(5, 50)}
    old = [Installed("grows", "amd64", 400), Installed("shrinks", "amd64", 900)]
    needs = _needs(_up("grows"), _up("shrinks"), _up("new", old=""), sizes=sizes, old=old)
    assert needs == {ROOT: 100 + 50 + 500, VAR: 35, BOOT: 0}


def test_architectures_of_one_package_count_each() -> None:
    found = Outcome((Change("libc6:i386", "2", "1", "i386"), Change("libc6", "2", "1", "amd64")))
    sizes = {("libc6", "i386"): Sizes(3, 30), ("libc6", "amd64"): Sizes(4, 40)}
    old = [Installed("libc6", "i386", 25), Installed("libc6", "amd64", 40)]
    assert dict(simulated(found, sizes, old, Boot()).needs) == {ROOT: 5 + 40, VAR: 7, BOOT: 0}


@pytest.mark.clause("SYS-2")
@pytest.mark.case("U3")
def test_a_new_kernel_needs_itself_and_its_initial_file_system_in_boot() -> None:
    boot = Boot(kernel=8 * MIB, initrd=40 * MIB, writers=frozenset({"udev"}))
    kernel = _up("linux-image-6.1.0-37-amd64", old="")
    assert _needs(kernel, sizes={}, boot=boot)[BOOT] == 48 * MIB
    assert _needs(kernel, _up("udev"), sizes={}, boot=boot)[BOOT] == 88 * MIB
    assert _needs(kernel, sizes={}, boot=boot)[VAR] == 160 * MIB, "where it is packed"


@pytest.mark.case("U3")
def test_the_first_kernel_of_a_device_needs_about_its_archive() -> None:
    kernel = _up("linux-image-6.1.0-37-amd64", old="")
    assert _needs(kernel, sizes={kernel.name: Sizes(26 * MIB, 130 * MIB)})[BOOT] == 26 * MIB


@pytest.mark.parametrize(
    ("name", "writes"),
    [("udev", True), ("firmware-misc-nonfree", True), ("intel-microcode", True), ("podman", False)],
)
def test_what_writes_the_initial_file_system_anew_needs_its_size_once(name: str, writes: bool) -> None:
    boot = Boot(kernel=8 * MIB, initrd=40 * MIB, writers=frozenset({"udev", "lvm2"}))
    assert _needs(_up(name), _up(name), sizes={}, boot=boot)[BOOT] == (40 * MIB if writes else 0)


@pytest.mark.parametrize(
    "name", ["linux-image-amd64", "linux-image-6.1.0-37-amd64-dbg", "linux-headers-6.1.0-37-amd64"]
)
def test_packages_around_a_kernel_are_none(name: str) -> None:
    assert _needs(_up(name), sizes={}, boot=Boot(kernel=1, initrd=1))[BOOT] == 0


SIZES = st.builds(Sizes, st.integers(0, 10**12), st.integers(0, 10**12))


@given(st.lists(st.tuples(CHANGES, SIZES), unique_by=lambda item: item[0].name), st.integers(0, 10**12))
def test_the_space_is_never_less_than_archives_and_the_largest_package(
    items: list[tuple[Change, Sizes]], before: int
) -> None:
    found = Outcome(tuple(change for change, _ in items))
    new = {(change.name, change.architecture): sizes for change, sizes in items}
    old = [Installed(change.name, change.architecture, before) for change, _ in items]
    result = simulated(found, new, old, Boot())
    assert result.upgrades + result.installs == len(items)
    assert result.needs[VAR] == sum(sizes.archive for _, sizes in items)
    assert result.needs[ROOT] >= max((sizes.unpacked for _, sizes in items), default=0)
