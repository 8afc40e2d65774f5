"""``fleetctl apply``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from fleet.ctl.client import Client
from fleet.ctl.commands.watch import watch
from fleet.ctl.errors import Exit, Refused
from fleet.ctl.output import say, warn
from fleet.ctl.session import agentrelease_path, client, deployment_path, taskrun_path
from fleet.ctl.watching import Timing

SUFFIXES = (".yaml", ".yml", ".json")
#: The server takes no larger text; more of a file is not even read.
MAX_BYTES = 1_048_576
#: Kinds that come to an end, so that ``--watch`` can follow them.
WATCHED = {"Deployment": deployment_path, "TaskRun": taskrun_path, "AgentRelease": agentrelease_path}


def texts(source: str) -> Iterator[tuple[str, bytes]]:
    """Names and contents of what ``-f`` names: a file, ``-``, or a folder's manifests in order of their names.

    Raises:
        Refused: when there is nothing to read.
    """
    if source == "-":
        yield "standard input", sys.stdin.buffer.read(MAX_BYTES + 1)
        return
    path = Path(source)
    files = sorted(each for each in path.iterdir() if each.suffix in SUFFIXES) if path.is_dir() else [path]
    if not files:
        raise Refused(f"{source}: no file in this folder ends with {', '.join(SUFFIXES)}", Exit.USAGE)
    for file in files:
        try:
            with file.open("rb") as opened:
                yield str(file), opened.read(MAX_BYTES + 1)
        except OSError as error:
            raise Refused(f"{file}: {error.strerror}", Exit.USAGE) from None


def apply(
    context: typer.Context,
    filename: Annotated[str, typer.Option("--filename", "-f", help="File, folder, or - for standard input.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check all and change nothing.")] = False,
    follow: Annotated[bool, typer.Option("--watch", help="Then follow each rollout.")] = False,
    timeout: Annotated[float | None, typer.Option(min=0, help="Of --watch, in seconds for each.")] = None,
) -> None:
    """Bring deployments, task runs and schedules to what manifests say. Of a file all are applied, or none."""
    server = client(context)
    applied, worst = [], Exit.OK
    for name, data in list(texts(filename)):
        try:
            applied += _apply(server, data, dry_run)
        except Refused as refused:
            _complain(name, refused)
            worst = worst or refused.code
    if follow and not dry_run:
        for path in applied:
            worst = worst or Exit(watch(server, path, Timing(timeout)))
    raise typer.Exit(worst)


def _apply(server: Client, data: bytes, dry_run: bool) -> list[str]:
    query = {"dry_run": "true"} if dry_run else {}
    answer = server.call("POST", "manifests/", query=query, data=data, content_type="application/yaml")
    paths = []
    for each in answer["results"]:
        name = f"{each['namespace']}/{each['name']}" if each["namespace"] else each["name"]
        say(f"{each['kind'].lower()} {name} {each['outcome']}: {each['message']}")
        if path := WATCHED.get(each["kind"]):
            paths.append(path(each["name"], each["namespace"]))
    return paths


def _complain(name: str, refused: Refused) -> None:
    """Every fault on a line of its own, ``file: path: message``."""
    for path, message in refused.faults or [("", str(refused))]:
        warn(": ".join(part for part in (name, path, message) if part))
