"""The commands of ``fleet-updater``. Root's: nothing here is for the agent, which only has the socket."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from agent.config import ConfigError
from agent.footprint import keep_small
from agent.updater import config as configuration
from agent.updater import release
from agent.updater.binary.executor import AgentUpgrades
from agent.updater.binary.host import Host
from agent.updater.binary.simulated import SimulatedHost
from agent.updater.config import Config
from agent.updater.executor import Executor, SystemUpgrade
from agent.updater.machine import Machine, MachineError
from agent.updater.repair import Repair
from agent.updater.server import Server
from agent.updater.service import Service, tell_systemd
from agent.updater.show import journal_lines, status_lines
from agent.updater.simulated import SimulatedMachine
from agent.updater.store import Busy, JournalStore
from agent.updater.updater import Updater

DONE, FAILED, WRONG_USE = 0, 1, 2
LOCK = "lock"
AGENT_CONFIG = Path("/etc/harmony-fleet/agent.toml")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 when it succeeded, 1 when it did not, 2 when it was called or configured wrongly."""
    options = _parser().parse_args(arguments)
    level = logging.DEBUG if options.verbose else logging.INFO
    logging.basicConfig(level=level, stream=sys.stderr, format="%(message)s")  # journald adds time and name
    try:
        return int(options.command(options))
    except ConfigError as error:
        return _complain(str(error), WRONG_USE)
    except (Busy, MachineError) as error:
        return _complain(str(error), FAILED)
    except OSError as error:
        return _complain(f"{error.filename or 'system'}: {error.strerror}", FAILED)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fleet-updater",
        description="Upgrades this device's operating system, and its agent, when the fleet's control plane asks.",
    )
    parser.add_argument(
        "--config",
        type=Path,
        default=configuration.DEFAULT_PATH,
        metavar="FILE",
        help="the configuration (default: %(default)s)",
    )
    parser.add_argument("--verbose", action="store_true", help="log also what is waited for")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _command(commands, "run", _run, "answer the agent and work until stopped; apt goes on without the updater")
    status = _command(commands, "status", _status, "show the attempts that this device knows, newest first")
    status.add_argument("--json", action="store_true", help="print JSON instead of text")
    journal = _command(commands, "journal", _journal, "show every entry of an attempt's journal")
    journal.add_argument("attempt", nargs="?", default="", metavar="ATTEMPT", help="default: the newest one")
    journal.add_argument("--json", action="store_true", help="print JSON, an entry per line, instead of text")
    _command(commands, "repair", _repair, "finish what was interrupted and needs root, and say what was done")
    _command(commands, "version", _version, "print the version")
    fetch = _command(commands, "fetch", _fetch, "fetch a release's archive; the updater runs this as the agent's user")
    fetch.add_argument("job", type=Path, metavar="JOBFILE")
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, function: object, text: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.set_defaults(command=function)
    return parser


def _complain(message: str, code: int) -> int:
    print(f"fleet-updater: {message}", file=sys.stderr)
    return code


def _run(options: argparse.Namespace) -> int:
    keep_small()
    config = configuration.load(options.config)
    peer = configuration.peer(config, options.config)
    store = JournalStore(config.state_dir)
    with store.hold(LOCK, f"another fleet-updater works with {config.state_dir}; stop it first"):
        store.open()
        machine = _machine(config)
        executors: list[Executor] = [
            SystemUpgrade(machine),
            AgentUpgrades(_host(config), config.agent_upgrade.by_step()),
        ]
        updater = Updater(machine, store, executors, release.own())
        server = Server(Path(config.updater.socket), updater.answer, allowed={peer.uid}, group=peer.gid)
        service = Service(updater, server)
        service.stop_on_signals()
        tell_systemd("READY=1")
        return DONE if service.run() else FAILED


def _status(options: argparse.Namespace) -> int:
    config = configuration.load(options.config)
    attempts = JournalStore(config.state_dir).attempts()
    if options.json:
        shown = [{"attempt": one.uid, "state": one.state, "last": one.last.entry()} for one in attempts]
        print(msgspec.json.format(msgspec.json.encode(shown)).decode())
    else:
        print("\n".join(status_lines(attempts, is_running=_is_running(config))))
    return DONE


def _journal(options: argparse.Namespace) -> int:
    store = JournalStore(configuration.load(options.config).state_dir)
    attempts = store.attempts()
    attempt = next((one for one in attempts if options.attempt in ("", one.uid)), None)
    if attempt is None:
        known = ", ".join(one.uid for one in attempts) or "none"
        return _complain(f"no attempt {options.attempt or 'at all'} is known here; known: {known}", FAILED)
    if options.json:
        print("\n".join(msgspec.json.encode(record.entry()).decode() for record in attempt.records))
    else:
        print("\n".join(journal_lines(attempt)))
    return DONE


def _repair(options: argparse.Namespace) -> int:
    config = configuration.load(options.config)
    repair = Repair(JournalStore(config.state_dir), _machine(config), _host(config), print, time.sleep)
    return DONE if repair.run() else FAILED


def _fetch(options: argparse.Namespace) -> int:
    """Imported only here: nothing that speaks to a network belongs into root's process."""
    from agent.releases.fetch.command import main as fetch  # noqa: PLC0415

    return fetch(options.job, AGENT_CONFIG)


def _version(options: argparse.Namespace) -> int:
    print(release.own().version)
    return DONE


def _is_running(config: Config) -> bool:
    try:
        JournalStore(config.state_dir).hold(LOCK, "").close()
    except Busy:
        return True
    return False


def _machine(config: Config) -> Machine:
    """Imported only when needed: simulated machines run where there is no systemd."""
    choice = config.machine
    if choice.kind == "simulated":
        return SimulatedMachine(faults=choice.simulated, pace=choice.pace)
    from agent.updater.debian import DebianMachine  # noqa: PLC0415

    return DebianMachine(config.state_dir)


def _host(config: Config) -> Host:
    if config.machine.kind == "simulated":
        return SimulatedHost()
    from agent.updater.debian import DebianHost  # noqa: PLC0415

    return DebianHost(config.state_dir, config.updater.agent_user)
