"""A command line program as a script calls it: arguments, environment and standard input in; code and two texts out."""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import forked

ROOT = Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 60


@dataclass(frozen=True)
class Done:
    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()


def run(module: str, arguments: Sequence[str], *, env: Mapping[str, str], stdin: bytes = b"") -> Done:
    """``python -m module arguments…`` in a process of its own, whose imports are done when ``forked`` knows it.

    Raises:
        TimeoutError: when it doesn't end; it is killed then.
    """
    with tempfile.TemporaryDirectory(prefix="fleet-command-") as name:
        folder = Path(name)
        (folder / "stdin").write_bytes(stdin)
        process = forked.processes().Process(target=_main, args=(module, list(arguments), dict(env), folder))
        process.start()
        process.join(LIMIT_SECONDS)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"{module} {arguments} did not end within {LIMIT_SECONDS} s")
        return Done(process.exitcode, (folder / "stdout").read_text(), (folder / "stderr").read_text())


def _main(module: str, arguments: list[str], env: dict[str, str], folder: Path) -> None:
    os.dup2(os.open(folder / "stdin", os.O_RDONLY), 0)
    os.dup2(os.open(folder / "stdout", os.O_WRONLY | os.O_CREAT), 1)
    os.dup2(os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT), 2)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  (multiprocessing has put /dev/null there)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(ROOT)
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)
