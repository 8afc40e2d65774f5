"""Agents without Podman: simulated runtime, a control plane in memory, a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.devices import Edge
from tests.support.fake_control import FakeControlPlane


@pytest.fixture
def control() -> Iterator[FakeControlPlane]:
    with FakeControlPlane() as fake:
        yield fake


@pytest.fixture
def edge(tmp_path: Path, control: FakeControlPlane) -> Edge:
    return Edge(tmp_path / "state", control)
