"""One runner at a time for a periodic job, without relying on it.

A lease runs out by itself, so a killed worker blocks nobody for longer than its seconds. Correctness never rests on a
lease: it saves work, the jobs themselves may run twice (case R14).
"""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db.models import Q

from fleet.core import clock
from fleet.core.models import Lease


@contextmanager
def lease(name: str, *, seconds: float) -> Iterator[bool]:
    """Whether we hold the lease inside the block; given back at its end if it is still ours."""
    holder = f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident()}:{uuid.uuid4().hex[:8]}"[:100]
    taken = _take(name, holder, seconds)
    try:
        yield taken
    finally:
        if taken:
            Lease.objects.filter(name=name, holder=holder).update(expires_at=clock.now())


def _take(name: str, holder: str, seconds: float) -> bool:
    now = clock.now()
    until = now + timedelta(seconds=seconds)
    free = Q(expires_at__lte=now)
    if Lease.objects.filter(free, name=name).update(holder=holder, expires_at=until):
        return True
    if Lease.objects.filter(name=name).exists():
        return False
    # The first time ever; of two who try, the unique key lets one through.
    Lease.objects.bulk_create([Lease(name=name, holder=holder, expires_at=until)], ignore_conflicts=True)
    return Lease.objects.filter(name=name, holder=holder).exists()
