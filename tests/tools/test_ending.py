"""A run of tests that is told to end leaves no server and no folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.control_plane import ROOT
from harness.waiting import wait_until
from tests.support.needs import need


@pytest.fixture
def temporary() -> Iterator[Path]:
    """Not below pytest's own folder, which is closed to the account that PostgreSQL runs as."""
    with tempfile.TemporaryDirectory(prefix="fleet-end-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_sigterm_puts_everything_away(temporary: Path, tmp_path: Path, workers: int) -> None:
    need("initdb", "redis-server")
    waits = tmp_path / "waits"
    environment = {**os.environ, "TMPDIR": str(temporary), "WAITS_FILE": str(waits), "FLEET_TEST_DATABASE": "postgres"}
    options = ["-q", "-p", "no:cacheprovider", f"--numprocesses={workers}", f"--basetemp={tmp_path / 'own'}"]
    command = [sys.executable, "-m", "pytest", *options, "tests/tools/waits_to_be_told.py"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as run:
        wait_until(lambda: waits.exists() or run.poll() is not None, seconds=120, what="the run holds its servers")
        held = {path.name.rpartition("-")[0] for path in temporary.iterdir()}
        run.send_signal(signal.SIGTERM)
    assert {"fleet-pg", "fleet-redis", "fleet-test"} <= held
    assert run.returncode == 128 + signal.SIGTERM
    assert list(temporary.iterdir()) == []
