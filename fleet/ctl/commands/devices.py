"""``fleetctl device``, ``group`` and ``token``: who is in the fleet, and who comes in."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from fleet.ctl.client import Client, segment
from fleet.ctl.commands.get import GROUPS, TOKENS, Output, show_sort
from fleet.ctl.errors import Exit, Refused
from fleet.ctl.output import Format, moment, say, warn
from fleet.ctl.session import client

device = typer.Typer(no_args_is_help=True, help="Look after a device.")
group = typer.Typer(no_args_is_help=True, help="Groups of the built-in group source.")
token = typer.Typer(no_args_is_help=True, help="Enrolment tokens, which let devices in.")

Device = Annotated[str, typer.Argument(help="Name of the device.")]
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LABEL = re.compile(r"(?P<key>[^=]+)=(?P<value>.*)|(?P<gone>[^=]+)-")


@device.command("canary")
def canary(
    context: typer.Context,
    name: Device,
    off: Annotated[bool, typer.Option("--off", help="No longer.")] = False,
) -> None:
    """Let a device go first in rollouts that are frozen from now on."""
    client(context).call("PATCH", f"devices/{segment(name)}/", body={"canary": not off})
    say(f"device {name} is {'no canary any more' if off else 'a canary'}")


@device.command("label")
def label(
    context: typer.Context,
    name: Device,
    labels: Annotated[list[str], typer.Argument(help="key=value to set, key- to take away.")],
) -> None:
    """Change the operator's labels of a device; they win over those that it reports."""
    server, path = client(context), f"devices/{segment(name)}/"
    wanted = dict(server.get(path)["spec"]["labels"])
    for text in labels:
        found = _LABEL.fullmatch(text)
        if found is None:
            raise Refused(f"{text!r} is no label; allowed: key=value to set it, key- to take it away", Exit.USAGE)
        if found["gone"]:
            wanted.pop(found["gone"], None)
        else:
            wanted[found["key"]] = found["value"]
    server.call("PATCH", path, body={"labels": wanted})
    shown = ",".join(f"{key}={value}" for key, value in wanted.items())
    say(f"device {name} has the operator's labels {shown or '(none)'}")


@device.command("reset")
def reset(context: typer.Context, name: Device) -> None:
    """End a device's credential now; it may enrol again under its name within a day."""
    client(context).call("POST", f"devices/{segment(name)}/reset-credential/")
    say(f"device {name} may enrol again within 24 hours; its credential has ended")


@device.command("forget")
def forget(context: typer.Context, name: Device) -> None:
    """Delete a device from the fleet. What it runs keeps running there."""
    client(context).call("DELETE", f"devices/{segment(name)}/")
    say(f"device {name} forgotten")


@device.command("upgrade-agent")
def upgrade_agent(
    context: typer.Context,
    name: Device,
    *,
    version: Annotated[str, typer.Option(help="Version of the agent, as in 1.4.0.")],
    architecture: Annotated[str, typer.Option(help="amd64 or arm64; the device's.")],
    url: Annotated[str, typer.Option(help="Where the archive is: https:// or oci://.")],
    max_size: Annotated[int, typer.Option(help="Bytes that the archive has at most.")],
    sha256: Annotated[str, typer.Option(help="Digest of the archive.")],
) -> None:
    """Say which agent a device shall run. Any version may follow any other."""
    body = {"version": version, "architecture": architecture, "url": url, "maxSize": max_size, "sha256": sha256}
    _say_standing(client(context).call("PUT", _agent_upgrade(name), body=body))


@device.command("keep-agent")
def keep_agent(context: typer.Context, name: Device) -> None:
    """Let a device keep the agent that it has. An upgrade that it has begun goes on."""
    found = client(context).call("DELETE", _agent_upgrade(name))
    say(f"device {name} keeps its agent {found['status']['agentVersion'] or '(none reported yet)'}")


@device.command("retry-upgrade")
def retry_upgrade(context: typer.Context, name: Device) -> None:
    """Ask a device once more for the agent that it shall run, after an attempt that is over."""
    _say_standing(client(context).call("POST", f"{_agent_upgrade(name)}retry/"))


@device.command("give-up-upgrade")
def give_up_upgrade(context: typer.Context, name: Device) -> None:
    """Wait no more for a device that began its agent upgrade and is not heard any more."""
    _say_standing(client(context).call("POST", f"{_agent_upgrade(name)}give-up/"))


def _agent_upgrade(name: str) -> str:
    return f"devices/{segment(name)}/agent-upgrade/"


def _say_standing(found: dict[str, Any]) -> None:
    standing = found["status"]["agentUpgrade"]
    say(f"device {found['metadata']['name']}: {standing['state']}. {standing['message']}")


@group.command("create")
def group_create(context: typer.Context, name: Annotated[str, typer.Argument(help="Name of the group.")]) -> None:
    """Make a new, empty group."""
    client(context).call("POST", "groups/", body={"name": name})
    say(f"group {name} created")


@group.command("set")
def group_set(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the group.")],
    devices: Annotated[list[str] | None, typer.Argument(help="All its devices; none to empty it.")] = None,
) -> None:
    """Say which devices are in a group."""
    found = client(context).call("PUT", f"groups/{segment(name)}/devices/", body={"devices": devices or []})
    number = len(found["devices"])
    say(f"group {name} has {number} {'device' if number == 1 else 'devices'}")


@group.command("list")
def group_list(context: typer.Context, output: Output = Format.TABLE) -> None:
    """All groups."""
    show_sort(GROUPS, list(client(context).pages(GROUPS.path)), output)


@group.command("delete")
def group_delete(context: typer.Context, name: Annotated[str, typer.Argument(help="Name of the group.")]) -> None:
    """Delete a group; frozen target sets stay as they are."""
    client(context).call("DELETE", f"groups/{segment(name)}/")
    say(f"group {name} deleted")


@token.command("create")
def token_create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="What you call it.")],
    *,
    groups: Annotated[list[str] | None, typer.Option("--group", help="Devices come into it; may be repeated.")] = None,
    labels: Annotated[list[str] | None, typer.Option("--label", help="key=value given to each device.")] = None,
    uses: Annotated[int, typer.Option(min=1, help="How many devices it lets in.")] = 1,
    expires_in: Annotated[str, typer.Option(help="Such as 30m, 12h, 7d.")] = "1h",
    output: Annotated[Format, typer.Option("--output", "-o", help="name prints the token alone.")] = Format.TABLE,
) -> None:
    """Make a token and show it, this once."""
    body = {
        "name": name,
        "useLimit": uses,
        "expiresInSeconds": seconds(expires_in),
        "groups": groups or [],
        "labels": dict(_given(text) for text in labels or []),
    }
    created = client(context).call("POST", "enrolment-tokens/", body=body)
    if output is Format.TABLE:
        warn(f"Lets {uses} in until {moment(created['expiresAt'])}. This is the only time that it is shown:")
        say(created["token"])
    else:
        _show_created(created, output)


def _show_created(created: dict[str, Any], output: Format) -> None:
    if output is Format.NAME:
        say(created["token"])
    else:
        show_sort(TOKENS, [created], output, alone=True)


def _given(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise Refused(f"--label: found {text!r}; allowed: key=value", Exit.USAGE)
    return key, value


def seconds(text: str) -> int:
    """The seconds of a duration like ``30m``.

    Raises:
        Refused: when it is none.
    """
    found = re.fullmatch(r"(\d{1,6})([smhd])", text, re.ASCII)
    if not found:
        raise Refused(f"--expires-in: found {text!r}; allowed: a number and s, m, h or d, as in 12h", Exit.USAGE)
    return int(found[1]) * _UNITS[found[2]]


@token.command("list")
def token_list(context: typer.Context, output: Output = Format.TABLE) -> None:
    """All tokens, without their secrets."""
    show_sort(TOKENS, list(client(context).pages(TOKENS.path)), output)


@token.command("revoke")
def token_revoke(context: typer.Context, name: Annotated[str, typer.Argument(help="Name of the token.")]) -> None:
    """Let nobody in by a token any more; devices that it let in stay."""
    _revoke(client(context), name)
    say(f"token {name} revoked")


def _revoke(server: Client, name: str) -> None:
    server.call("POST", f"enrolment-tokens/{segment(name)}/revoke/")
