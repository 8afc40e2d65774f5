"""The commands of ``fleet-agent``."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from agent import config as configuration
from agent import trials
from agent.app import Agent, NotEnrolled, build, enrol, trial_control
from agent.clock import SystemClock
from agent.config import Config, ConfigError
from agent.control import ControlError
from agent.engine import Engine
from agent.footprint import keep_small
from agent.reconcile.reconciler import InlineWorkers
from agent.setup import command as setup
from agent.status import Status, lines
from agent.store import Store, StoreBusy
from agent.trials import TrialFailed
from agent.version import VERSION
from agent.wire.messages import DeploymentState

DONE, FAILED, WRONG_USE = 0, 1, 2

logger = logging.getLogger("agent")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 when it succeeded, 1 when it did not, 2 when it was called or configured wrongly."""
    options = _parser().parse_args(arguments)
    _set_up_logging(verbose=options.verbose)
    try:
        return int(options.command(options))
    except ConfigError as error:
        return _complain(str(error), WRONG_USE)
    except (NotEnrolled, StoreBusy, ControlError, TrialFailed) as error:
        return _complain(str(error), FAILED)
    except OSError as error:
        return _complain(f"{error.filename or 'system'}: {error.strerror}", FAILED)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fleet-agent", description="Runs what the fleet's control plane wants on this device, with Podman."
    )
    parser.add_argument(
        "--config",
        type=Path,
        default=configuration.DEFAULT_PATH,
        metavar="FILE",
        help="the configuration (default: %(default)s)",
    )
    parser.add_argument("--verbose", action="store_true", help="log every change of state to standard error")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    enroll = _command(commands, "enroll", _enroll, "exchange an enrolment token for this device's credential")
    enroll.add_argument(
        "--token-file", type=Path, required=True, metavar="FILE", help="file with the token; - for standard input"
    )
    _command(commands, "run", _run, "work until stopped; containers go on without the agent")
    _command(commands, "once", _once, "poll, make one pass over all deployments, report, and end")
    status = _command(commands, "status", _status, "show what the agent knows: contact, problems, deployments")
    status.add_argument("--json", action="store_true", help="print JSON instead of text")
    refresh = "let the agent resolve secrets anew; containers restart only where a value has changed"
    _command(commands, "refresh-secrets", _refresh_secrets, refresh)
    _command(commands, "self-test", _self_test, "check that this release could run here; changes nothing")
    asks = "make one authenticated call to the control plane that changes nothing"
    probing = _command(commands, "probe", _probe, asks)
    probing.add_argument(
        "--seconds",
        type=float,
        default=240.0,
        metavar="N",
        help="how long to try when it can't be reached (default: 240)",
    )
    _add_setup(commands)
    _command(commands, "version", _version, "print the version")
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, function: object, text: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.set_defaults(command=function)
    return parser


def _add_setup(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "make this machine a device of the fleet: users, folders, units; as root, from an unpacked release"
    setup.add_arguments(_command(commands, "setup", setup.main, text))


def _set_up_logging(*, verbose: bool) -> None:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # its retries are ours to tell


def _complain(message: str, code: int) -> int:
    print(f"fleet-agent: {message}", file=sys.stderr)
    return code


def _enroll(options: argparse.Namespace) -> int:
    config = configuration.load(options.config)
    token = sys.stdin.read() if str(options.token_file) == "-" else options.token_file.read_text()
    identity = enrol(config, token.strip())
    print(f"{identity.device} is enrolled (uid {identity.uid}) with {config.server.url}")
    return DONE


def _run(options: argparse.Namespace) -> int:
    keep_small()
    config = configuration.load(options.config)
    with Store(config.state_dir).lock():
        engine = Engine(build(config))
        stop = threading.Event()

        def end(*_: object) -> None:
            stop.set()
            engine.wake()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        engine.run(stop)
    return DONE


def _once(options: argparse.Namespace) -> int:
    config = configuration.load(options.config)
    with Store(config.state_dir).lock():
        agent = build(config, workers=InlineWorkers())
        error: ControlError | None = None
        for step in (agent.poll, agent.reconcile, agent.report, lambda: _answer_all(agent)):
            try:
                step()
            except ControlError as problem:
                error = problem
        agent.write_status(error)
        status = agent.status(error)
    print("\n".join(lines(status, is_running=False)))
    failed = any(item.state is DeploymentState.FAILED for item in status.deployments)
    return FAILED if failed or error else DONE


def _answer_all(agent: Agent) -> None:
    while agent.logs.has_replies():
        agent.answer()


def _status(options: argparse.Namespace) -> int:
    config = configuration.load(options.config)
    store = Store(config.state_dir)
    status = store.status(Status)
    if status is None:
        return _complain(_no_status(config, store), FAILED)
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(status)).decode())
    else:
        print("\n".join(lines(status, is_running=_is_running(store))))
    return DONE


def _refresh_secrets(options: argparse.Namespace) -> int:
    """An order in the state folder instead of a signal: it outlives the agent and needs no right but to write there."""
    config = configuration.load(options.config)
    store = Store(config.state_dir)
    if store.identity() is None:
        return _complain(_no_status(config, store), FAILED)
    store.order_refresh()
    when = f"within {config.agent.pass_seconds * 1.1:.3g} s" if _is_running(store) else "when it runs next"
    print(f"the agent resolves all secrets anew {when}; see: fleet-agent status")
    return DONE


def _no_status(config: Config, store: Store) -> str:
    if store.identity() is None:
        return f"{config.device.id} is not enrolled yet; run: fleet-agent enroll --token-file FILE"
    return f"{config.device.id} is enrolled, but no agent has run yet; run: fleet-agent run"


def _is_running(store: Store) -> bool:
    try:
        store.lock().close()
    except StoreBusy:
        return True
    return False


def _say(words: str) -> None:
    """At once: whoever ends a trial looks at its last line."""
    print(words, flush=True)


def _self_test(options: argparse.Namespace) -> int:
    trials.self_test(options.config, _say)
    print(f"fleet-agent {VERSION} self-test passed")
    return DONE


def _probe(options: argparse.Namespace) -> int:
    config = configuration.load(options.config)
    patience = trials.Patience(options.seconds, SystemClock(), time.sleep)
    trials.probe(trial_control(config), patience, _say)
    print(f"fleet-agent {VERSION} probe passed")
    return DONE


def _version(options: argparse.Namespace) -> int:
    print(VERSION)
    return DONE
