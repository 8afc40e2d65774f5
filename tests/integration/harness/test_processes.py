"""What the demo, the benchmarks and the tests start ends with them and leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from harness.control_plane import ROOT
from harness.postgres import PostgresServer
from harness.process import ManagedProcess, NotReady
from harness.programs import ProgramMissing, program
from harness.redis import RedisServer
from harness.waiting import wait_until
from tests.support.needs import need

PARENT_AND_CHILD = "sleep 300 & echo $! >child; exec sleep 300"


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_program_that_ends_too_early_is_said_with_its_log(tmp_path: Path) -> None:
    process = ManagedProcess("sh", ["sh", "-c", "echo no disk >&2; exit 3"], log=tmp_path / "sh.log")
    with pytest.raises(NotReady, match=r"sh ended with code 3 before it was ready\n.*sh.log ---\nno disk"):
        process.start(lambda: False)


def test_a_program_that_is_never_ready_is_ended(tmp_path: Path) -> None:
    process = ManagedProcess("sleep", ["sleep", "300"], log=tmp_path / "log")
    with pytest.raises(TimeoutError, match=r"sleep is ready: not so within 0.2 s"):
        process.start(lambda: False, seconds=0.2)
    assert not process.running


def test_its_children_end_with_it(tmp_path: Path) -> None:
    child = tmp_path / "child"
    process = ManagedProcess("sh", ["sh", "-c", PARENT_AND_CHILD], log=tmp_path / "log", cwd=tmp_path)
    process.start(lambda: child.exists() and child.read_text().strip())
    process.stop()
    wait_until(lambda: is_gone(int(child.read_text())), seconds=5, what="the child is gone")


def test_it_ends_when_we_are_killed(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path; from harness.process import ManagedProcess; import time\n"
        "process = ManagedProcess('sh', ['sh', '-c', 'echo up; exec sleep 300'], log=Path('log'))\n"
        "process.start(lambda: Path('log').read_text()); print(process.pid, flush=True); time.sleep(300)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout
        pid = int(starter.stdout.readline())
        starter.send_signal(signal.SIGKILL)
    wait_until(lambda: is_gone(pid), seconds=5, what="the program is gone")


def test_postgresql_is_known_before_it_runs_and_leaves_nothing() -> None:
    need("initdb")
    server = PostgresServer()
    url = server.url()
    with server, psycopg.connect(url) as connection:
        assert connection.execute("SELECT current_database()").fetchone() == ("fleet",)
        assert server.folder.stat().st_mode & 0o077 == 0
    assert not server.folder.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


def test_redis_comes_back_at_the_same_address_and_empty() -> None:
    need("redis-server")
    with RedisServer() as server:
        client = redis.Redis.from_url(server.url)
        client.set("bell", "rung")
        server.stop()
        with pytest.raises(redis.ConnectionError):
            client.ping()
        server.start()
        assert client.get("bell") is None
        with pytest.raises(redis.AuthenticationError):
            redis.Redis.from_url(server.url.replace("redis://:", "redis://:x")).ping()


def test_a_missing_program_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        ProgramMissing, match=r"docker-registry is not installed; on Debian: apt-get install .*registry"
    ):
        program("docker-registry")
