"""No test by itself (its name hides it from collection): a run that holds real servers until it is told to end."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import pytest

from harness.redis import RedisServer


@pytest.mark.django_db
def test_waits(redis_server: RedisServer) -> None:
    Path(os.environ["WAITS_FILE"]).touch()
    with contextlib.suppress(Exception):  # as much of what is tested does
        time.sleep(100)
