"""Several things at the same time, on real connections."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from django.db import connections


def together(*steps: Callable[[], Any]) -> list[BaseException]:
    """Run each step in a thread of its own, all from one starting gun; what they raised."""
    gun = threading.Barrier(len(steps))
    raised: list[BaseException] = []

    def run(step: Callable[[], Any]) -> None:
        try:
            gun.wait(10)
            step()
        except BaseException as error:
            raised.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    return raised
