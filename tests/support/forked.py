"""Processes of our own programs that begin within milliseconds: forked from one that has done their imports.

What is forked is as good as started: one thread, a memory, an environment and an exit code of its own.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext

_PRELOADED = [
    "agent.cli",
    "agent.runtime.host",
    "agent.runtime.podman",
    "agent.updater.cli",
    "fleet.ctl.main",
    "tests.support.command",
    "tests.support.lives",
]


def processes() -> ForkServerContext:
    """Make processes with its ``Process``. There is one such server in a run's process, so its list is for all."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return context
