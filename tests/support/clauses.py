"""``pytest --clauses``: which test shows which clause of docs/reference/behaviour.md, and which clause has none."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

BEHAVIOUR = Path(__file__).resolve().parents[2] / "docs" / "reference" / "behaviour.md"
_ROW = re.compile(r"^\| (?P<bold>\*\*)?(?P<id>[A-Z][A-Z0-9]*-\d+)(?:\*\*)? \|")


@dataclass(frozen=True)
class Clause:
    """A row of the behaviour's tables; a ``guarded`` one (in bold) has a mutant too."""

    id: str
    guarded: bool


def claimed(page: Path = BEHAVIOUR) -> list[Clause]:
    """The clauses that the product claims to keep, in the page's order."""
    rows = map(_ROW.match, page.read_text(encoding="utf-8").splitlines())
    return [Clause(row["id"], guarded=row["bold"] is not None) for row in rows if row]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--clauses", action="store_true", help="list the clauses with their tests, and run nothing")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "clause(*ids): the test shows these clauses of docs/reference/behaviour.md")
    config.addinivalue_line("markers", "case(*ids): the test is that situation from the field (R2, P3, E1, …)")
    config.addinivalue_line("markers", "root(why): cannot run as an ordinary user; the why is for people")
    config.addinivalue_line("markers", "slow: takes more than a few seconds")
    config.addinivalue_line("markers", "database: runs on PostgreSQL and a second time on SQLite; implies django_db")
    if config.getoption("--clauses"):
        config.option.collectonly = True
        config.option.verbose = -2


def pytest_collection_finish(session: pytest.Session) -> None:
    if not session.config.getoption("--clauses"):
        return
    clauses, tests = claimed(), named_by(session.items, "clause")
    for line in [*table([clause.id for clause in clauses], tests), "", *table([], named_by(session.items, "case"))]:
        print(line)
    if faults := faults_of([clause.id for clause in clauses], tests):
        raise pytest.UsageError("\n".join(faults))


def named_by(items: Iterable[pytest.Item], marker: str) -> dict[str, list[str]]:
    """The tests (without their parameters) that name each id."""
    tests: dict[str, dict[str, None]] = defaultdict(dict)
    for item in items:
        for mark in item.iter_markers(marker):
            for name in mark.args:
                tests[name][item.nodeid.partition("[")[0]] = None
    return {name: list(ids) for name, ids in sorted(tests.items())}


def table(order: Iterable[str], tests: Mapping[str, list[str]]) -> list[str]:
    """Lines of id and tests: those of ``order`` first, then the others."""
    ids = dict.fromkeys([*order, *tests])
    return [f"{name:<8} {test}" for name in ids for test in tests.get(name, ["no test"])]


def faults_of(clauses: list[str], tests: Mapping[str, list[str]]) -> list[str]:
    """What is wrong: clauses without a test, and tests that name a clause that nobody claims."""
    bare = [
        f"{name}: no test names this clause; mark one with @pytest.mark.clause" for name in clauses if name not in tests
    ]
    page = "docs/reference/behaviour.md"
    unknown = [f"{name}: not a clause of {page}, named by {tests[name][0]}" for name in tests if name not in clauses]
    return bare + unknown
