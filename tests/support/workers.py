"""A run spread over worker processes (``-n``, as tools/test does): who runs what, and what comes back besides results.

Each worker is a pytest of its own with its own database server, Redis, data folder, Podman and browser.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import needs

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

#: Tests of a file below these stay together: they share a Podman, a browser or the parsed source, which take seconds.
TOGETHER = ("tests/architecture/", "tests/browser/", "tests/contract/agent/", "tests/integration/agent/")
#: Runs of whole suites, one each: minutes that nothing is shared in.
APART = "tests/integration/agent/test_rootless.py"
#: What begins first, because one piece of it takes longest; unit tests come last and fill the gaps.
FIRST = (
    APART,
    "tests/integration/simulation/",
    "tests/integration/agent/",
    "tests/browser/",
    "tests/tools/",
    "tests/integration/",
    "tests/contract/",
)
LAST = "tests/unit/"


def piece_of(test: str) -> str:
    """The piece of work that a test belongs to: it is given to one worker as a whole."""
    return test.partition("::")[0] if test.startswith(TOGETHER) and not test.startswith(APART) else test


def rank(test: str) -> int:
    """Tests of a lower rank begin earlier."""
    if test.startswith(LAST):
        return len(FIRST) + 1
    return next((place for place, folder in enumerate(FIRST) if test.startswith(folder)), len(FIRST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415  (single-process runs needn't have it)

    class InPieces(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return piece_of(nodeid)

    config.option.loadscopereorder = False  # our order is better than the one by number of tests
    return InPieces(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: rank(item.nodeid))


def pytest_collection_finish() -> None:
    """What was imported until now is no garbage later on: searching it takes a second each time."""
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker tells what this machine lacks; the controller lists it."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["missing"] = list(needs.missing())


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Called by the controller for every worker that ended; one that crashed says nothing."""
    needs.note(getattr(node, "workeroutput", {}).get("missing", ()))
