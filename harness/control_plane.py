"""The control plane as an installation runs it: a web server, workers and the beat, each a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

from harness.ports import free_port
from harness.process import ManagedProcess, NotReady

ROOT = Path(__file__).resolve().parent.parent
#: Django and every app are imported before a process is ready; a busy machine of two cores needs a while.
START_SECONDS = 60
#: Of a web process: each keeps a connection to the database, and without a limit there would be hundreds.
THREADS = 8
#: Requests that a waiting process holds at most: more than its own limit, so that it can say that it is full.
MOST_WAITING = 16_384


class ControlPlane:
    """Processes that share one environment; a context manager that ends them all.

    ``folder`` gets their logs. ``env`` is added to ours: ``FLEET_DATABASE_URL``, ``FLEET_REDIS_URL``,
    ``FLEET_DATA_DIR``, … Without the first two it is the embedded default in ``FLEET_DATA_DIR``.
    """

    def __init__(self, folder: Path, *, env: Mapping[str, str], settings: str = "fleet.settings.local") -> None:
        self.folder = folder
        ours = {"PYTHONUNBUFFERED": "1", "FLEET_JOB_LOG_LEVEL": "INFO"}
        self.env = {**os.environ, **ours, **env, "DJANGO_SETTINGS_MODULE": settings}
        self.processes: list[ManagedProcess] = []

    def __enter__(self) -> ControlPlane:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End every process, the last one first."""
        while self.processes:
            self.processes.pop().stop()

    def manage(self, *arguments: str) -> str:
        """Run one ``manage.py`` command; its output.

        Raises:
            RuntimeError: when it fails; the message has its output.
        """
        done = subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *arguments],
            env=self.env,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"manage.py {arguments[0]} failed with code {done.returncode}:\n{done.stdout}{done.stderr}"
            )
        return done.stdout

    def web(self, *, host: str = "127.0.0.1", port: int | None = None, workers: int = 1) -> str:
        """Start the web server; its address, like ``http://127.0.0.1:8000``."""
        port = port or free_port()
        command = ["granian", "--interface", "wsgi", "--host", host, "--port", str(port)]
        command += ["--workers", str(workers), "--blocking-threads", str(THREADS), "--log-level", "warning"]
        address = f"http://{host}:{port}"
        self._start("web", [*command, "fleet.wsgi:application"], lambda: _answers(f"{address}/healthz"))
        return address

    def waiting(self, *, port: int | None = None, name: str = "waiting") -> str:
        """Start a process in which devices wait; its address. Several need a name each."""
        port = port or free_port()
        command = ["granian", "--interface", "asgi", "--http", "1", "--no-ws", "--host", "127.0.0.1"]
        command += ["--port", str(port), "--backlog", str(MOST_WAITING), "--backpressure", str(MOST_WAITING)]
        address = f"http://127.0.0.1:{port}"
        self._start(
            name, [*command, "--log-level", "warning", "fleet.asgi:application"], lambda: _answers(f"{address}/healthz")
        )
        return address

    def worker(self, *, concurrency: int = 1, name: str = "worker") -> ManagedProcess:
        """Start a Celery worker; several need a name each."""
        command = ["celery", "-A", "fleet.celery", "worker", "--concurrency", str(concurrency)]
        command += ["--hostname", f"{name}@localhost", "--loglevel", "INFO", "--without-gossip", "--without-mingle"]
        log = self.folder / f"{name}.log"
        return self._start(name, command, lambda: b" ready." in log.read_bytes())

    def beat(self, *, name: str = "beat") -> ManagedProcess:
        """Start the scheduler of the periodic jobs."""
        log = self.folder / f"{name}.log"
        command = ["celery", "-A", "fleet.celery", "beat", "--loglevel", "INFO", "--pidfile="]
        return self._start(name, command, lambda: b"beat: Starting" in log.read_bytes())

    def _start(self, name: str, module: list[str], ready: Callable[[], object]) -> ManagedProcess:
        process = ManagedProcess(
            name, [sys.executable, "-m", *module], log=self.folder / f"{name}.log", env=self.env, cwd=ROOT
        )
        self.processes.append(process)
        process.start(ready, seconds=START_SECONDS)
        return process


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except urllib.error.HTTPError as error:
        raise NotReady(f"{url} is answered with {error.code}") from error
    except OSError:
        return False
