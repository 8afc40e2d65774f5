"""A program that runs beside us and ends with us, also when we are killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harness.waiting import wait_until

LOG_TAIL_BYTES = 4000


class NotReady(RuntimeError):
    """A program that will not become ready: it ended, or answers with an error. The message has the end of its log."""


class ManagedProcess:
    """One program with its log file; a context manager.

    The kernel ends it when the thread that started it ends (``setpriv --pdeathsig``), so start it from a thread that
    lives as long as it is needed. It leads a session of its own: Ctrl-C in a terminal reaches us only, and we stop it.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | os.PathLike[str]],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        user: str | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._command = [*_ends_with_us(user), *(os.fspath(word) for word in command)]
        self._env = dict(env) if env is not None else None
        self._cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ManagedProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Its process id; raises ``NotReady`` when it was not started."""
        if self._process is None:
            raise NotReady(f"{self.name} was not started")
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, ready: Callable[[], object] = lambda: True, *, seconds: float = 30) -> None:
        """Start it and wait until ``ready`` answers truthy.

        Raises:
            NotReady: when it ends before that, or ``ready`` raises this.
            TimeoutError: when it is not ready within ``seconds``; it is stopped then.
        """
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._env,
                cwd=self._cwd,
                start_new_session=True,
            )
        try:
            wait_until(lambda: self._still_runs() and ready(), seconds=seconds, what=f"{self.name} is ready")
        except (NotReady, TimeoutError) as error:
            self.kill()
            raise type(error)(f"{error}\n{self.tail()}") from None
        except BaseException:
            self.kill()
            raise

    def stop(self, with_signal: signal.Signals = signal.SIGTERM, *, seconds: float = 10) -> int | None:
        """Ask it to end, force it after ``seconds``; its exit code. Nothing of its process group is left."""
        if self._process is None:
            return None
        if self.running:
            self._process.send_signal(with_signal)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
        return self.kill()

    def kill(self) -> int | None:
        """End it and its children at once, as a power loss does; its exit code."""
        if self._process is None:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait()

    def wait(self) -> int | None:
        """Until it ends by itself; its exit code."""
        return None if self._process is None else self._process.wait()

    def tail(self) -> str:
        """The end of its log."""
        text = self.log.read_bytes()[-LOG_TAIL_BYTES:] if self.log.exists() else b""
        return f"--- the end of {self.log.name} ---\n{text.decode(errors='replace')}"

    def _still_runs(self) -> bool:
        if not self.running:
            code = self._process.returncode if self._process else None
            raise NotReady(f"{self.name} ended with code {code} before it was ready")
        return True


def _ends_with_us(user: str | None) -> list[str]:
    as_user = [f"--reuid={user}", f"--regid={user}", "--init-groups"] if user else []
    return ["setpriv", "--pdeathsig", "TERM", *as_user, "--"]
