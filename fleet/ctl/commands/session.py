"""``fleetctl login``, ``logout`` and ``version``."""

from __future__ import annotations

import getpass
import sys
from typing import Annotated

import typer

from fleet.ctl import config
from fleet.ctl.client import Client
from fleet.ctl.errors import Exit, Refused
from fleet.ctl.output import say
from fleet.ctl.session import Options, client


def login(
    context: typer.Context,
    username: Annotated[str, typer.Option(help="Who you are; asked for when absent.")] = "",
    password_stdin: Annotated[bool, typer.Option("--password-stdin", help="Read it from standard input.")] = False,
) -> None:
    """Change your password for a token and keep that in fleetctl's configuration."""
    options: Options = context.ensure_object(Options)
    found = config.load(server=options.server, ca_file=options.ca_file)
    nobody = Client(config.Config(found.server, "", found.ca_file))
    name = username or typer.prompt("Username")
    password = sys.stdin.readline().rstrip("\r\n") if password_stdin else _ask()
    if ":" in name or not password:
        raise Refused("a name without a colon and a password are needed", Exit.USAGE)
    answer = nobody.call("POST", "auth/login/", auth=(name, password))
    file = config.save(config.Config(found.server, answer["token"], found.ca_file))
    say(f"Logged in to {found.server} as {name}; the token is in {file}")


def _ask() -> str:
    if not sys.stdin.isatty():
        raise Refused("there is no terminal to ask for the password; use --password-stdin", Exit.USAGE)
    return getpass.getpass()


def logout(context: typer.Context) -> None:
    """End the token and forget it."""
    user = client(context)
    user.call("POST", "auth/logout/")
    config.save(config.Config(user.config.server, "", user.config.ca_file))
    say(f"Logged out of {user.config.server}")
