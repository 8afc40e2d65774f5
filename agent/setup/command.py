"""``fleet-agent setup`` on the command line."""

from __future__ import annotations

import argparse
import re
import socket
import sys
from collections.abc import Iterable
from pathlib import Path

from agent.setup import plan, progress, release, setup
from agent.setup.items import Item
from agent.setup.layout import Layout
from agent.setup.plan import Wishes
from agent.setup.release import SetupError
from agent.upgrades.client import SocketUpdater, Updater, UpdaterError
from agent.wire import names
from agent.wire.messages import AttemptState
from agent.wire.updater import AGENT_UPGRADE_V1, DEFAULT_SOCKET, GetStatus, UpdaterStatus

DONE, FAILED, WRONG_USE = 0, 1, 2
_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+(/[A-Za-z0-9._~/-]*)?")
_PATH = re.compile(r"/[A-Za-z0-9._/-]+")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="change nothing; say what differs, and end with 1 then")
    parser.add_argument("--url", help="the control plane's address, for a first agent.toml")
    parser.add_argument("--device-id", help="this device's name (default: the host's)")
    parser.add_argument("--ca-file", default="", help="certificate authorities to trust instead of the system's")
    parser.add_argument(
        "--token-file", metavar="FILE", help="file with an enrolment token, to enrol at once; - for standard input"
    )


def main(options: argparse.Namespace) -> int:
    """0: the device is set up; 1: it is not, or something differs; 2: called wrongly."""
    try:
        wishes = _wishes(options)
    except SetupError as error:
        return _complain(error, WRONG_USE)
    try:
        setup.require_host()
        source = release.folder()
        about = release.read(source)
        items = plan.items(Layout(), source, about, wishes)
        return _check(Layout(), items) if options.check else set_up(Layout(), items, options.token_file)
    except SetupError as error:
        return _complain(error, FAILED)


def _check(layout: Layout, items: Iterable[Item]) -> int:
    differs = setup.look(items, print).changed + setup.look_at_units(setup.units_that_can_run(layout, print), print)
    if progress.is_unfinished(layout.at(progress.FILE)):
        differs.append("units")
        print("differs  an earlier setup was cut off before it started the units anew")
    print(f"{len(differs)} differ; run without --check to make them right" if differs else "nothing differs")
    return FAILED if differs else DONE


def set_up(layout: Layout, items: Iterable[Item], token_file: str | None) -> int:
    """Bring everything about and start it; what an earlier setup changed without starting it counts as changed."""
    token = _token(token_file)
    with progress.alone(layout.at(progress.FILE)) as work:
        _let_upgrades_end(SocketUpdater(layout.at(DEFAULT_SOCKET)))
        changed = setup.bring_about(items, print, work.begin).changed
        if token:
            setup.enrol(layout, token, print)
        started = setup.start_units(work.is_unfinished, print)
        work.end()
    print("this device is set up" if changed or started else "nothing had to be done")
    return DONE


def _let_upgrades_end(updater: Updater) -> None:
    """An agent upgrade switches the same link and starts the same unit, and comes to its end within its limits.

    Raises:
        SetupError: one is at work. Where no updater answers there is none that could be.
    """
    try:
        answer = updater.ask(GetStatus())
    except UpdaterError:
        return
    for one in answer.attempts if isinstance(answer, UpdaterStatus) else ():
        if one.executor == AGENT_UPGRADE_V1 and one.state in (AttemptState.ACCEPTED, AttemptState.RUNNING):
            raise SetupError(
                f"the agent is being upgraded to {one.version} (step {one.step}); run setup again when that has ended, "
                "which fleet-updater status tells"
            )


def _token(path: str | None) -> str:
    if path is None:
        return ""
    try:
        return (sys.stdin.read() if path == "-" else Path(path).read_text()).strip()
    except OSError as error:
        raise SetupError(f"--token-file: {path}: {error.strerror}") from None


def _wishes(options: argparse.Namespace) -> Wishes | None:
    """What goes into a file is looked at here, before anything is made."""
    if not options.url:
        return None
    device = options.device_id or socket.gethostname().partition(".")[0].lower()
    if not _URL.fullmatch(options.url):
        raise SetupError(f"--url: found {options.url!r}; allowed: an address like https://fleet.example.com")
    if not re.fullmatch(names.DNS_LABEL, device) or len(device) > 63:
        raise SetupError(f"--device-id: found {device!r}; allowed: lower case letters, digits and dashes, at most 63")
    if options.ca_file and not _PATH.fullmatch(options.ca_file):
        raise SetupError(f"--ca-file: found {options.ca_file!r}; allowed: an absolute path")
    return Wishes(options.url, device, options.ca_file)


def _complain(error: SetupError, code: int) -> int:
    print(f"fleet-agent setup: {error}", file=sys.stderr)
    return code
