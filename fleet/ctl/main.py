"""The command line."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from typing import Annotated, NoReturn

import typer

from fleet.ctl.commands import (
    apply,
    changes,
    describe,
    devices,
    get,
    logs,
    releases,
    schedules,
    secrets,
    session,
    taskruns,
    watch,
)
from fleet.ctl.errors import EXPLAINED, Exit, Refused
from fleet.ctl.output import say, warn
from fleet.ctl.session import Options

_CODES = "\n\n".join(f"{code.value}: {meaning}" for code, meaning in EXPLAINED.items())
_HELP = f"""Roll out to a fleet of devices.

The server and a token come from `fleetctl login`, or from FLEETCTL_SERVER and FLEETCTL_TOKEN.

Exit codes:

{_CODES}"""

app = typer.Typer(
    name="fleetctl",
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    *,
    server: Annotated[str, typer.Option(help="Address of the server [FLEETCTL_SERVER].")] = "",
    ca_file: Annotated[str, typer.Option(help="Trust the authorities of this PEM file [FLEETCTL_CA_FILE].")] = "",
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    context.obj = Options(server, ca_file)


app.command("login")(session.login)
app.command("logout")(session.logout)
app.command("apply")(apply.apply)
app.command("get")(get.get)
app.command("retarget")(changes.retarget)
app.command("end")(changes.end)
app.command("delete")(changes.delete)
app.command("forget-device")(changes.forget_device)
app.command("logs")(logs.logs)
app.add_typer(describe.app, name="describe")
app.add_typer(watch.app, name="watch")
app.add_typer(devices.device, name="device")
app.add_typer(devices.group, name="group")
app.add_typer(devices.token, name="token")
app.add_typer(secrets.app, name="secret")
app.add_typer(taskruns.app, name="taskrun")
app.add_typer(taskruns.agent_releases, name="agentrelease")
app.add_typer(schedules.app, name="schedule")
app.add_typer(releases.app, name="release")


@app.command("version")
def version() -> None:
    """The version of fleetctl."""
    say(f"fleetctl {installed_version('harmony-fleet')}")


def main() -> NoReturn:
    """Run a command; the process ends with one of the codes of ``fleet.ctl.errors``."""
    try:
        app()
    except Refused as refused:
        for path, message in refused.faults or [("", str(refused))]:
            warn(f"fleetctl: {path}: {message}" if path else f"fleetctl: {message}")
        sys.exit(refused.code)
    sys.exit(Exit.OK)
