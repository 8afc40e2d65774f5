from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet.core import clock
from simulation.cast import Knobs
from tests.integration.simulation.rehearsal import Rehearsal


@pytest.fixture
def rehearse(db: None, tmp_path: Path) -> Iterator[Callable[..., Rehearsal]]:
    """``rehearse(60, Knobs(…))``: a fleet that has begun, on a clock that the control plane has too."""
    with contextlib.ExitStack() as exits:

        def begin(devices: int, knobs: Knobs, **options: Any) -> Rehearsal:
            made = Rehearsal(tmp_path, devices, knobs, **options)
            exits.enter_context(clock.reading(made.now))
            made.begin()
            return made

        yield begin
