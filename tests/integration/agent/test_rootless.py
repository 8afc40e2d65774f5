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
SUITES = {
    "deployments": [HERE / "test_deployments_on_podman.py"],
    "process and power": [
        *(HERE / f"test_{name}.py" for name in ("process", "power_on_podman", "ghosts_on_podman", "site_on_podman")),
        "-k",
        "not light",
    ],
    "preflight": [HERE / "test_preflight_on_podman.py", "-k", "low_port or each_way or another_owner or at_once"],
    "runtime": ["tests/contract/agent/test_runtimes.py", "-k", "podman"],
    "site": [HERE / "test_private_registry.py", "-k", "own_login or proxy or lost_its_name"],
    "killed": [HERE / "test_killed.py", "-k", "create-web or remove-api or document or desired.json"],
}

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
    done = user.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-m", "not root", *map(str, SUITES[suite])],
        env={"PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(user.home), "CI": "true"},
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert re.search(r"\b\d+ passed", done.stdout)
    assert "skipped" not in done.stdout.splitlines()[-1]
