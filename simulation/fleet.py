"""A fleet of simulated devices in one process: enrolled, put on an agenda, and looked at."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec
import requests
from requests.adapters import HTTPAdapter

from agent.clock import Clock, SystemClock
from agent.config import Config, Device, RuntimeChoice, Server, Timing
from agent.updater.simulated import Pace
from agent.wire.messages import DeploymentState
from simulation.agenda import Agenda
from simulation.cast import Character, Knobs, cast
from simulation.device import SimulatedDevice, World
from simulation.meter import Meter, Metered

#: Slow devices wait in threads of their own, so that they hold up nobody else.
SLOW_THREADS = 64
DEFAULT_THREADS = 16


@dataclass(frozen=True, slots=True)
class Script:
    """What is simulated. ``pace`` is that of system upgrades; ``folder`` gets a state folder for each device, for which
    memory is the right place.
    """

    devices: int
    url: str
    folder: Path
    prefix: str = "sim"
    labels: Mapping[str, str] = field(default_factory=dict)
    timing: Timing = field(default_factory=Timing)
    knobs: Knobs = field(default_factory=Knobs)
    pace: Pace = field(default_factory=Pace)
    seed: int = 1
    threads: int = DEFAULT_THREADS

    def names(self) -> list[str]:
        """``sim-00001`` and so on."""
        return [f"{self.prefix}-{number:05d}" for number in range(1, self.devices + 1)]


class SimulatedFleet:
    """``clock``, ``sleep`` and ``session`` are the machine's unless a test gives its own."""

    def __init__(
        self,
        script: Script,
        *,
        clock: Clock | None = None,
        sleep: Callable[[float], None] = time.sleep,
        session: requests.Session | None = None,
    ) -> None:
        self.script = script
        self.clock = clock or SystemClock()
        self.meter = Meter()
        self._session = session or _shared_session(script.threads + SLOW_THREADS)
        self._dice = random.Random(script.seed)  # noqa: S311  (repeatable, not secret)
        self._world = World(self.clock, sleep, self._dice, script.pace)
        self.devices = list(self._cast())
        self.quick, self.slow = Agenda(self.clock), Agenda(self.clock)

    def enrol(
        self, token: str, *, stop: threading.Event, on_progress: Callable[[int], None] = lambda done: None
    ) -> None:
        """Enrol every device over HTTP, until ``stop`` is set.

        Raises:
            ControlError: the first refusal, with the control plane's sentence.
        """
        with ThreadPoolExecutor(self.script.threads) as pool:
            waiting = [pool.submit(device.enrol, token) for device in self.devices]
            try:
                for done, enrolled in enumerate(waiting, start=1):
                    enrolled.result()
                    on_progress(done)
                    if stop.is_set():
                        break
            finally:
                pool.shutdown(cancel_futures=True)

    def schedule(self, within: float | None = None) -> None:
        """Let every device begin at some moment ``within`` seconds, by default one poll; 0 lets all call at once."""
        spread = self.script.timing.poll_seconds if within is None else within
        now = self.clock.monotonic()
        for device in self.devices:
            agenda = self.slow if device.character.slow_seconds else self.quick
            agenda.add(device.step, now + self._dice.uniform(0, spread))

    def start(self, stop: threading.Event) -> list[threading.Thread]:
        """Run in threads until ``stop`` is set."""
        return self.quick.start(self.script.threads, stop) + self.slow.start(SLOW_THREADS, stop)

    def do_due(self) -> None:
        """What is due now, in this thread."""
        self.quick.do_due()
        self.slow.do_due()

    # What it looks like --------------------------------------------------------------------------------------------

    @property
    def failures(self) -> int:
        """Steps of agents that ended with an exception: a bug of the agent."""
        return self.quick.failures + self.slow.failures

    def reachable(self) -> int:
        return sum(not device.is_offline() for device in self.devices)

    def count(self, state: DeploymentState) -> int:
        """Devices that are in this state with all that they have, by their own honest account."""
        return sum(device.is_in(state) for device in self.devices)

    def acknowledged(self) -> dict[str, int]:
        """The highest report that was acknowledged, by device."""
        return {device.name: device.agent.outbox.acknowledged for device in self.devices}

    def _cast(self) -> Iterator[SimulatedDevice]:
        characters: Iterable[Character] = cast(self.script.devices, self.script.knobs, self.script.seed)
        connect = partial(Metered, self.script.url, self.meter, session=self._session)
        for name, character in zip(self.script.names(), characters, strict=True):
            yield SimulatedDevice(_config(self.script, name), character, self._world, connect)


def _config(script: Script, name: str) -> Config:
    """Without waiting: a thread for each device that waits would be too many."""
    timing = msgspec.structs.replace(script.timing, state_dir=str(script.folder / name))
    return Config(
        server=Server(url=script.url, wait=False),
        device=Device(id=name, labels=dict(script.labels)),
        agent=timing,
        runtime=RuntimeChoice(kind="simulated"),
    )


def _shared_session(connections: int) -> requests.Session:
    """One connection for each thread instead of one for each device."""
    session = requests.Session()
    session.trust_env = False  # looking for proxies and a .netrc at every request costs more than the request
    adapter = HTTPAdapter(pool_connections=1, pool_maxsize=connections)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session
