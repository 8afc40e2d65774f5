"""Which kernel should run after a reboot, by the names of those that are installed."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.updater.debian.kernels import flavour, newest, releases


def _is_newer(one: str, other: str) -> bool:
    """For names of the same form; the order of dpkg is asked for in the tests against the real one."""
    return _numbers(one) > _numbers(other)


def _numbers(release: str) -> list[int]:
    words = "".join(char if char.isdigit() else " " for char in release).split()
    return [int(word) for word in words]


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("6.1.0-37-amd64", "amd64"),
        ("6.1.0-37-cloud-amd64", "cloud-amd64"),
        ("6.1.0-37-rt-amd64", "rt-amd64"),
        ("6.12.38+deb13-amd64", "amd64"),
        ("6.12.9+bpo-cloud-arm64", "cloud-arm64"),
        ("6.1.0-0.deb11.13-amd64", "amd64"),
        ("6.12.38+deb13-arm64-16k", "arm64-16k"),
        ("6.12.25+rpt-rpi-v8", "rpi-v8"),
        ("6.12.25+rpt-rpi-2712", "rpi-2712"),
        ("6.1.0-rpi7-rpi-v8", "rpi-v8"),
        ("5.15.0-91-generic", "generic"),
        ("6.1.21-v8+", ""),
        ("6.8.1", ""),
        ("", ""),
    ],
)
def test_the_flavour_is_what_upgrades_keep(release: str, expected: str) -> None:
    assert flavour(release) == expected


def test_only_packages_with_a_kernel_in_them_bring_one() -> None:
    names = [
        "linux-image-amd64",
        "linux-image-6.1.0-37-amd64",
        "linux-image-6.1.0-38-amd64-unsigned",
        "linux-image-6.1.0-37-amd64-dbg",
        "linux-image-unsigned-5.15.0-91-generic",
        "linux-headers-6.1.0-37-amd64",
        "podman",
    ]
    assert releases(names) == ["6.1.0-37-amd64", "6.1.0-38-amd64", "5.15.0-91-generic"]


@pytest.mark.clause("SYS-4")
def test_the_newest_of_the_running_flavour_is_expected() -> None:
    there = ["6.1.0-9-amd64", "6.1.0-37-amd64", "6.1.0-10-amd64", "6.1.0-40-cloud-amd64"]
    assert newest("6.1.0-9-amd64", there, _is_newer) == "6.1.0-37-amd64"


@pytest.mark.clause("SYS-4")
@pytest.mark.parametrize("running", ["6.1.0-9-rt-amd64", "6.1.21-v8+", "6.9.0-mine"])
def test_no_kernel_is_expected_where_no_package_brought_one_of_the_flavour(running: str) -> None:
    assert newest(running, ["6.1.0-37-amd64"], _is_newer) is None


@given(st.permutations([f"6.{minor}.0-{abi}-amd64" for minor, abi in itertools.product((1, 12), (2, 9, 10))]))
def test_the_order_in_which_they_are_listed_does_not_matter(there: list[str]) -> None:
    assert newest("6.1.0-2-amd64", there, _is_newer) == "6.12.0-10-amd64"


@given(st.text(max_size=60) | st.text("0123456789.-+~ab", max_size=300))
def test_odd_names_have_no_flavour_or_end_in_it(release: str) -> None:
    found = flavour(release)
    assert release.endswith(found)
    releases([release, f"linux-image-{release}"])
