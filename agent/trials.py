"""``fleet-agent self-test`` and ``probe``: what a release shows before it may become the agent (UPG-3).

Both change nothing, neither on the device nor at the control plane; the updater runs them as the agent's user.
"""

from __future__ import annotations

import importlib
import os
import platform
import random
import ssl
from collections.abc import Callable
from pathlib import Path

from agent import config as configuration
from agent.attempts import Attempts
from agent.clock import Clock
from agent.config import Config
from agent.control import ControlError, ControlPlane, Unauthorised
from agent.facts import ARCHITECTURES
from agent.store import Store

#: What is only loaded when it is needed, and would be missed then.
_LATER = ("agent.runtime.podman", "agent.runtime.host", "agent.secrets.cache", "agent.logs", "nacl.secret", "podman")
_PROBE_BASE_SECONDS = 1.0

Say = Callable[[str], None]


class TrialFailed(Exception):
    """The message says what was found, and where."""


def self_test(path: Path, say: Say) -> None:
    """Look at everything that a run needs but the network.

    Raises:
        TrialFailed: something is missing or does not fit.
        ConfigError: the configuration cannot be read by this version.
    """
    machine = platform.machine()
    say(f"architecture: {ARCHITECTURES.get(machine, machine)}")
    for name in _LATER:
        _load(name)
    say(f"libraries: {len(_LATER)} that are loaded later, {ssl.OPENSSL_VERSION}")
    config = configuration.load(path)
    say(f"configuration: {path}")
    _trust(config)
    _look_at_state(config.state_dir, say)


def probe(control: ControlPlane, patience: Patience, say: Say = lambda words: None) -> None:
    """One authenticated call that changes nothing; as often as it takes within the time that there is.

    Raises:
        ControlError: the control plane was not reached, or does not accept this device.
    """
    while True:
        try:
            control.desired("")
        except ControlError as error:
            if isinstance(error, Unauthorised) or not error.is_temporary:
                raise
            say(f"{error}; tries again")
            if not patience.has_more(error):
                raise
        else:
            return


class Patience:
    """How long a call is tried again. ``seconds`` from now."""

    def __init__(self, seconds: float, clock: Clock, sleep: Callable[[float], None]) -> None:
        self._clock = clock
        self._sleep = sleep
        self._ends = clock.monotonic() + seconds
        self._calls = Attempts(_PROBE_BASE_SECONDS)
        self._dice = random.Random()  # noqa: S311  (spreads load, hides nothing)

    def has_more(self, error: ControlError) -> bool:
        """Wait after this error; False when there is no time for it."""
        now = self._clock.monotonic()
        self._calls.failed(error, now, self._dice)
        due = max(self._calls.due, now + error.retry_after)
        if due >= self._ends:
            return False
        self._sleep(due - now)
        return True


def _load(name: str) -> None:
    try:
        importlib.import_module(name)
    except Exception as error:
        raise TrialFailed(f"{name} cannot be loaded: {error}") from None


def _trust(config: Config) -> None:
    """Whether the certificate authorities can be read at all."""
    try:
        ssl.create_default_context(cafile=config.server.ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise TrialFailed(f"server.ca_file {config.server.ca_file}: {error}") from None


def _look_at_state(folder: Path, say: Say) -> None:
    if not os.access(folder, os.R_OK | os.X_OK):
        raise TrialFailed(f"{folder} cannot be read by this user (number {os.geteuid()})")
    if problems := Store(folder).newer_files():
        raise TrialFailed("; ".join(problems))
    say(f"state: {folder}")
