"""The suites of real Podman once more, all as an ordinary user: Podman, the agent, and the tests themselves.

What is marked ``root`` says why it cannot run so. Of the table of kills one row of each kind is enough here.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.needs import need
from tests.support.ordinary_user import OrdinaryUser, ordinary_user

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent.relative_to(ROOT)
#: Each is one run with a Podman, a registry and images of its own, which take a quarter of a minute to make.
SUITES: dict[str, tuple[list[str], str]] = {
    "deployments": (["deployments_on_podman"], ""),
    "process and power": (["process", "power_on_podman", "ghosts_on_podman", "site_on_podman"], "not light"),
    "samples": (
        ["preflight_on_podman", "private_registry", "killed", "runtimes"],
        "preflight_on_podman and (low_port or each_way or another_owner or at_once)"
        " or private_registry and (own_login or proxy or lost_its_name)"
        " or test_killed and (create-web or remove-api or document or desired.json)"
        " or test_runtimes and podman",
    ),
}
ELSEWHERE = {"runtimes": Path("tests/contract/agent")}

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="without root the suites run as an ordinary user anyway")


@pytest.fixture(scope="module")
def user() -> Iterator[OrdinaryUser]:
    need("podman", "newuidmap", "slirp4netns", "setpriv", "unshare", "useradd")
    with ordinary_user() as made:
        yield made


@pytest.mark.clause("AGT-11")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("suite", SUITES)
def test_the_suite_passes_without_root(user: OrdinaryUser, suite: str):
    names, choice = SUITES[suite]
    files = [str(ELSEWHERE.get(name, HERE) / f"test_{name}.py") for name in names]
    done = user.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-m", "not root", "-k", choice, *files],
        env={"PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(user.home), "CI": "true"},
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert re.search(r"\b\d+ passed", done.stdout)
    assert "skipped" not in done.stdout.splitlines()[-1]
