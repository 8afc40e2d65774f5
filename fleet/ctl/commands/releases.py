"""``fleetctl release``: the shelf of agent releases."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fleet.ctl.client import segment
from fleet.ctl.commands.get import Output, Sort, show_sort
from fleet.ctl.errors import Exit, Refused
from fleet.ctl.output import Format, moment, say
from fleet.ctl.session import client

app = typer.Typer(no_args_is_help=True, help="Releases of the agent that devices may be asked to run.")

Digest = Annotated[str, typer.Argument(help="SHA-256 of the archive.")]


def _row(each: dict[str, Any]) -> tuple[object, ...]:
    place = each["url"] or "here"
    counts = each["running"], each["wanting"]
    return (
        each["version"],
        each["architecture"],
        f"{each['size']:,}",
        *counts,
        each["sha256"],
        place,
        moment(each["addedAt"]),
    )


HEADS = ("VERSION", "ARCH", "BYTES", "RUN IT", "SHALL RUN IT", "SHA256", "LIES", "ADDED")
RELEASES = Sort("releases/", HEADS, _row, lambda each: str(each["sha256"]))


@app.command("push")
def push(
    context: typer.Context,
    archive: Annotated[Path, typer.Argument(help="The archive, as make agent-release builds it.")],
    *,
    notes: Annotated[str, typer.Option(help="What people should know of it.")] = "",
) -> None:
    """Put an archive on the shelf; version, architecture, size and digest are read from it."""
    try:
        with archive.open("rb") as file:
            files = {"file": (archive.name, file, "application/gzip"), "notes": (None, notes)}
            made = client(context).call("POST", "releases/upload/", files=files)
    except OSError as error:
        raise Refused(f"{archive}: {error.strerror}", Exit.USAGE) from None
    say(f"release {made['version']} for {made['architecture']} is on the shelf\nsha256 {made['sha256']}")


@app.command("list")
def list_(context: typer.Context, output: Output = Format.TABLE) -> None:
    """What is on the shelf, the newest first."""
    show_sort(RELEASES, list(client(context).pages("releases/")), output)


@app.command("remove")
def remove(context: typer.Context, sha256: Digest) -> None:
    """Take a release off the shelf; devices that run it go on."""
    client(context).call("DELETE", f"releases/{segment(sha256)}/")
    say(f"release {sha256[:12]}… is off the shelf")
