"""``manage.py simulate``: many devices in this process, with their agents' real loop on containers that are made up."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import tempfile
import threading
from argparse import ArgumentTypeError
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agent.config import Timing
from agent.control import ControlError
from agent.wire import names as grammar
from devices.services.tokens import MAX_USES
from fleet.core.errors import FleetError
from simulation import enlisting, show
from simulation.cast import Knobs
from simulation.faults import Lie
from simulation.fleet import DEFAULT_THREADS, Script, SimulatedFleet

#: The agents' state folders belong into memory: ten thousand of them are 320 MB and change all the time.
MEMORY = Path("/dev/shm")  # noqa: S108  (a folder with a random name is made in it)
#: How long the workers may take for the last reports, before the summary says that they are behind.
DRAIN_SECONDS = 30.0


class Command(BaseCommand):
    """Enrols its devices itself, so it needs the control plane's database settings as well as its address."""

    help = "Simulate devices: the agent's real loop on made-up containers, with faults on demand."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--devices", type=_count, required=True, metavar="N", help=f"how many, 1 to {MAX_USES}")
        parser.add_argument("--url", default="http://127.0.0.1:8000", help="of the control plane (%(default)s)")
        parser.add_argument("--prefix", type=_prefix, default="sim", help="of their names (%(default)s-00001, …)")
        parser.add_argument("--group", default="simulated", help="they are in; made when missing (%(default)s)")
        parser.add_argument(
            "--label", type=_label, action="append", default=[], metavar="K=V", help="they report; may be repeated"
        )
        parser.add_argument("--seconds", type=_seconds, metavar="S", help="end after so long instead of by Ctrl-C")
        parser.add_argument(
            "--within", type=_seconds, metavar="S", help="all begin within S; 0 is all at once (--poll)"
        )
        parser.add_argument("--keep", action="store_true", help="do not forget the devices at the end")
        parser.add_argument("--seed", type=int, default=1, help="who has which fault (%(default)s)")
        parser.add_argument("--threads", type=_count, default=DEFAULT_THREADS, help="requests at once (%(default)s)")
        _add_timing(parser)
        _add_faults(parser)

    def handle(self, *arguments: Any, **options: Any) -> None:
        stop = threading.Event()
        try:
            with _quiet_agents(), _ended_by_signals(stop), _state_folder() as folder:
                fleet = SimulatedFleet(_script(options, folder))
                self._play(fleet, stop, options)
        except (FleetError, ControlError) as error:
            raise CommandError(str(error)) from None

    def _play(self, fleet: SimulatedFleet, stop: threading.Event, options: dict[str, Any]) -> None:
        names = fleet.script.names()
        screen = show.Screen(self.stdout)
        self.stdout.write(show.cast_line(fleet))
        with enlisting.admitted(names, group=options["group"]) as token:
            try:
                fleet.enrol(token, stop=stop, on_progress=screen.progress("enrolled", len(names)))
            except BaseException:
                self._put_away(names, screen, keep=False)
                raise
        try:
            if not stop.is_set():
                self._run(fleet, stop, screen, options)
        finally:
            self._put_away(names, screen, keep=options["keep"])

    def _run(self, fleet: SimulatedFleet, stop: threading.Event, screen: show.Screen, options: dict[str, Any]) -> None:
        fleet.schedule(options["within"])
        threads = fleet.start(stop)
        begin = fleet.clock.monotonic()
        end = begin + options["seconds"] if options["seconds"] is not None else float("inf")
        line = show.Line(fleet)
        while not stop.wait(min(screen.every_seconds, max(0.0, end - fleet.clock.monotonic()))):
            screen.live(line.text())
            if fleet.clock.monotonic() >= end:
                break
        stop.set()
        ran = fleet.clock.monotonic() - begin
        for thread in threads:
            thread.join()
        screen.end()
        self.stdout.write(show.summary(fleet, ran, _behind(fleet)))

    def _put_away(self, names: list[str], screen: show.Screen, *, keep: bool) -> None:
        if keep:
            self.stdout.write(f"Kept: {names[0]} to {names[-1]}; they are offline from now on.")
            return
        try:
            done = enlisting.forget(names, on_progress=screen.progress("forgotten", len(names)))
        except KeyboardInterrupt:
            screen.end()
            raise CommandError("interrupted; the same command forgets the rest when it ends the next time") from None
        self.stdout.write(f"Forgotten: {done} simulated devices.")


def _behind(fleet: SimulatedFleet) -> dict[str, str]:
    """Reports that were not taken in although the workers had time to."""
    deadline = fleet.clock.monotonic() + DRAIN_SECONDS
    wait = threading.Event()
    while (behind := enlisting.behind(fleet.acknowledged())) and fleet.clock.monotonic() < deadline:
        wait.wait(0.5)
    return behind


@contextlib.contextmanager
def _quiet_agents() -> Iterator[None]:
    """Ten thousand agents that each say that they are offline help nobody; the summary counts."""
    logger = logging.getLogger("agent")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextlib.contextmanager
def _ended_by_signals(stop: threading.Event) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) sets ``stop``; the second one interrupts what is being put away."""

    def end(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _state_folder() -> Iterator[Path]:
    place = MEMORY if os.access(MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="fleet-simulation-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _script(options: dict[str, Any], folder: Path) -> Script:
    return Script(
        devices=options["devices"],
        url=options["url"],
        folder=folder,
        prefix=options["prefix"],
        labels=dict(options["label"]),
        timing=Timing(
            poll_seconds=options["poll"],
            heartbeat_seconds=options["heartbeat"],
            pass_seconds=options["pass"],
            settle_seconds=options["settle"],
            pull_jitter_seconds=options["jitter"],
        ),
        knobs=Knobs(
            offline=options["offline"],
            offline_seconds=options["offline_seconds"],
            slow=options["slow"],
            slow_seconds=options["slow_seconds"],
            lying=options["lying"],
            lies=tuple(options["lie"] or Lie),
            duplicate=options["duplicate"],
            reorder=options["reorder"],
            clock_off=options["clock_off"],
            clock_hours=options["clock_hours"],
            failing_upgrades=options["failing_upgrades"],
            failing_agents=options["failing_agents"],
        ),
        seed=options["seed"],
        threads=options["threads"],
    )


def _add_timing(parser: CommandParser) -> None:
    group = parser.add_argument_group("intervals of the agents, in seconds, as in agent.toml")
    group.add_argument("--poll", type=_interval, default=10.0, metavar="S", help="(%(default)g)")
    group.add_argument("--heartbeat", type=_interval, default=30.0, metavar="S", help="(%(default)g)")
    group.add_argument("--pass", type=_interval, default=30.0, metavar="S", help="(%(default)g)")
    group.add_argument("--settle", type=_seconds, default=10.0, metavar="S", help="(%(default)g)")
    group.add_argument("--jitter", type=_seconds, default=5.0, metavar="S", help="of pulls (%(default)g)")


def _add_faults(parser: CommandParser) -> None:
    group = parser.add_argument_group("faults: SHARE is 0 to 1 of the devices, each fault drawn by itself")
    group.add_argument("--offline", type=_share, default=0.0, metavar="SHARE", help="away now and then")
    group.add_argument("--offline-seconds", type=_interval, default=60.0, metavar="S", help="for S, back for S")
    group.add_argument("--slow", type=_share, default=0.0, metavar="SHARE", help="every request takes longer")
    group.add_argument("--slow-seconds", type=_seconds, default=2.0, metavar="S", help="by S")
    group.add_argument("--lying", type=_share, default=0.0, metavar="SHARE", help="report what is not so")
    group.add_argument(
        "--lie",
        type=Lie,
        choices=list(Lie),
        action="append",
        help="converged: claims it while its containers exit; revision: converged on one that it was not told of; "
        "labels: canary and another device; may be repeated (all)",
    )
    group.add_argument("--duplicate", type=_share, default=0.0, metavar="SHARE", help="reports arrive twice")
    group.add_argument("--reorder", type=_share, default=0.0, metavar="SHARE", help="old reports arrive after new ones")
    group.add_argument("--clock-off", type=_share, default=0.0, metavar="SHARE", help="the time of day is wrong")
    group.add_argument(
        "--clock-hours", type=float, default=12.0, metavar="H", help="by H, ahead or behind (%(default)g)"
    )
    group.add_argument("--failing-upgrades", type=_share, default=0.0, metavar="SHARE", help="system upgrades fail")
    group.add_argument("--failing-agents", type=_share, default=0.0, metavar="SHARE", help="a new agent ends at once")


def _count(text: str) -> int:
    return int(_number(text, 1, MAX_USES, whole=True))


def _share(text: str) -> float:
    return _number(text, 0, 1)


def _seconds(text: str) -> float:
    return _number(text, 0, 31_536_000)


def _interval(text: str) -> float:
    return _number(text, 0.2, 86_400)


def _number(text: str, least: float, most: float, *, whole: bool = False) -> float:
    try:
        value = float(int(text)) if whole else float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        kind = "a whole number" if whole else "a number"
        raise ArgumentTypeError(f"found {text!r}; allowed: {kind} from {least:g} to {most:g}")
    return value


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ArgumentTypeError(f"found {text!r}; allowed: KEY=VALUE")
    return key, value


def _prefix(text: str) -> str:
    if not grammar.fits(grammar.DNS_LABEL, f"{text}-00001"):
        raise ArgumentTypeError(f"found {text!r}; allowed: lower-case letters, digits and -, at most 57 characters")
    return text
