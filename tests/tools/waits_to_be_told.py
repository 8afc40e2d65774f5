"""No test by itself (its name hides it from collection): a run that holds real servers until it is told to end."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from harness.redis import RedisServer


@pytest.mark.django_db
def test_waits(redis_server: RedisServer) -> None:
    Path(os.environ["WAITS_FILE"]).touch()
    time.sleep(100)
