"""The agent's threads leave no heaps of their own behind (AGT-14)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent.footprint import keep_small

ROOT = Path(__file__).parents[3]
#: Eight threads need memory at the same time; glibc says in how many heaps it found some.
THREADS = """
import ctypes, sys, threading
from agent.footprint import keep_small
if sys.argv[1] == "small":
    assert keep_small()
together = threading.Barrier(8)
def work():
    together.wait()
    held = [bytearray(1000) for _ in range(1000)]
    together.wait()
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
ctypes.CDLL(None).malloc_stats()
"""


@pytest.mark.clause("AGT-14")
def test_threads_share_one_heap():
    def heaps(size: str) -> int:
        command = [sys.executable, "-c", THREADS, size]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stderr.count("Arena ")

    assert heaps("as it is") > 1
    assert heaps("small") == 1


def test_a_library_without_the_setting_is_left_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    assert not keep_small()
