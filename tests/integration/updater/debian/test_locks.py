"""Who holds a lock, as the kernel knows it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.updater.debian.locks import holder

#: Locks a file as apt does, renames itself, says so, and holds it until its input ends.
_HOLDS = """
import fcntl, pathlib, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
pathlib.Path("/proc/self/comm").write_text(sys.argv[2])
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def _held(path: Path, name: str) -> Iterator[int]:
    command = [sys.executable, "-c", _HOLDS, str(path), name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process.pid
        process.communicate()


@pytest.mark.clause("SYS-1")
def test_the_holder_of_a_lock_is_named_and_forgotten_when_it_lets_go(tmp_path: Path) -> None:
    first, second = tmp_path / "lock-frontend", tmp_path / "lock"
    first.touch()
    with _held(second, "unattended-upgr") as process:
        assert holder([str(first), str(second)]) == f"unattended-upgr (process {process})"
    assert holder([str(first), str(second)]) == ""


def test_a_lock_that_was_never_made_is_free(tmp_path: Path) -> None:
    assert holder([str(tmp_path / "none")]) == ""


def test_asking_takes_no_lock_and_a_reader_is_no_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    with path.open():
        assert holder([str(path)]) == ""
    with _held(path, "apt-get"):
        assert holder([str(path)]).startswith("apt-get")


def test_a_holder_cannot_write_control_characters_into_our_sentences(tmp_path: Path) -> None:
    with _held(tmp_path / "lock", "a\nb\x1b[31m") as process:
        assert holder([str(tmp_path / "lock")]) == f"a�b�[31m (process {process})"
