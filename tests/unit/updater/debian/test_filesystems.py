"""Folders that take from the same free bytes although their device numbers differ."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.updater.debian.filesystems import pool

BTRFS = """\
22 1 0:20 /@ / rw,relatime shared:1 - btrfs /dev/sda2 rw,subvol=/@
23 22 0:20 /@var /var rw,relatime shared:2 master:3 - btrfs /dev/sda2 rw,subvol=/@var
24 22 8:1 / /boot rw - ext4 /dev/sda1 rw
25 24 0:5 / /boot/with\\040space rw - btrfs /dev/odd\\040name rw
"""
ZFS = "22 1 0:20 / / rw - zfs rpool/ROOT/debian rw\n23 22 0:21 / /var rw - zfs rpool/var rw\n"


@pytest.mark.clause("SYS-2")
@pytest.mark.parametrize(
    ("mounts", "folder", "expected"),
    [
        (BTRFS, "/", "btrfs /dev/sda2"),
        (BTRFS, "/var", "btrfs /dev/sda2"),
        (BTRFS, "/var/lib/dpkg", "btrfs /dev/sda2"),
        (BTRFS, "/boot", ""),
        (BTRFS, "/boot/with space/x", "btrfs /dev/odd name"),
        (BTRFS, "/bootleg", "btrfs /dev/sda2"),
        (ZFS, "/var", "zfs rpool"),
        (ZFS, "/", "zfs rpool"),
        (BTRFS + "26 22 8:3 / /var rw - ext4 /dev/sda3 rw\n", "/var", ""),
        ("", "/", ""),
        ("22 1 0:20 / / rw - btrfs\nodd\n - - - - - - - - - -\n", "/", ""),
    ],
)
def test_parts_of_a_pool_are_one(mounts: str, folder: str, expected: str) -> None:
    assert pool(mounts, folder) == expected


@given(st.text(max_size=200), st.text(max_size=20))
def test_odd_tables_raise_nothing(mounts: str, folder: str) -> None:
    pool(mounts, f"/{folder}")
