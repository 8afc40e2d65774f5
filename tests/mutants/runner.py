"""Applying mutants to copies of the tree and running the tests that have to notice them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.catalogue import Mutant

ALL_PASSED, SOME_FAILED = 0, 1
_FAILED = re.compile(r"^FAILED (\S+)", re.MULTILINE)
TEST_SECONDS = 60
RUN_SECONDS = 300


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant: noticed by a test, or the reason why not."""

    mutant: Mutant
    noticed_by: str
    fault: str
    seconds: float


@dataclass(frozen=True)
class _Outcome:
    code: int
    output: str

    @property
    def first_failure(self) -> str:
        found = _FAILED.search(self.output)
        return found[1] if found else ""


class Workshop:
    """Copies of a tree in which things may be broken. One test run at a time in each copy."""

    def __init__(self, root: Path, folder: Path, copies: int) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        for number in range(copies):
            copy = folder / f"copy{number}"
            _copy(root, copy)
            self._free.put(copy)

    def faults_unmutated(self, mutants: Sequence[Mutant]) -> str:
        """Empty when all named tests pass without a mutation; else what pytest said."""
        for database in sorted({mutant.database for mutant in mutants}):
            tests = dict.fromkeys(test for m in mutants if m.database == database for test in m.tests)
            with self._copy() as copy:
                outcome = _run(copy, list(tests), database)
            if outcome.code != ALL_PASSED:
                return outcome.output
        return ""

    def judge(self, mutant: Mutant) -> Verdict:
        """Apply one mutant, run its tests, take it back."""
        begin = time.monotonic()
        with self._copy() as copy, _applied(mutant, copy):
            outcome = _run(copy, mutant.tests, mutant.database, "--exitfirst")
        noticed_by = outcome.first_failure if outcome.code == SOME_FAILED else ""
        return Verdict(mutant, noticed_by, "" if noticed_by else _fault(outcome), time.monotonic() - begin)

    @contextmanager
    def _copy(self) -> Iterator[Path]:
        copy = self._free.get()
        try:
            yield copy
        finally:
            self._free.put(copy)


@contextmanager
def workshop(root: Path, *, copies: int) -> Iterator[Workshop]:
    """A workshop in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="fleet-mutants-") as folder:
        yield Workshop(root, Path(folder), copies)


def judge_all(place: Workshop, mutants: Sequence[Mutant], *, at_once: int) -> Iterable[Verdict]:
    """The verdicts in the mutants' order, as they come."""
    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(place.judge, mutants)


def _fault(outcome: _Outcome) -> str:
    if outcome.code == ALL_PASSED:
        return "SURVIVED: its tests pass all the same"
    last = outcome.output.strip().splitlines()[-1:] or ["no output"]
    return f"BROKEN: its tests could not run (pytest ended with {outcome.code}): {last[0]}"


def _copy(root: Path, copy: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (root / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, copy / name)


@contextmanager
def _applied(mutant: Mutant, copy: Path) -> Iterator[None]:
    path = copy / mutant.file
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace(mutant.find, mutant.replace), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(before, encoding="utf-8")


def _run(copy: Path, tests: Sequence[str], database: str, *options: str) -> _Outcome:
    """Run tests in a copy; ``python -m`` puts the copy before the installed checkout on the path."""
    # No byte code: a mutant of the same size within the same second would be taken for what it replaced.
    environment = {**os.environ, "FLEET_TEST_DATABASE": database, "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("DJANGO_SETTINGS_MODULE", None)  # the copy's own configuration says it
    quiet = ["-q", "--no-header", "--tb=short", "-rf", "-p", "no:cacheprovider", f"--timeout={TEST_SECONDS}"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *quiet, *options, *tests],
            cwd=copy,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _Outcome(-1, f"no end within {RUN_SECONDS} s")
    return _Outcome(done.returncode, done.stdout)
