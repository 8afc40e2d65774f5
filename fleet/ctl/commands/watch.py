"""``fleetctl watch``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fleet.ctl import watching
from fleet.ctl.client import Client
from fleet.ctl.output import console, plain, say
from fleet.ctl.session import DEFAULT_NAMESPACE, Namespace, agentrelease_path, client, deployment_path, taskrun_path
from fleet.ctl.watching import Seen, Timing

app = typer.Typer(no_args_is_help=True, help="Follow something until it is decided.")
#: The way that a rollout goes when all is well; without canaries it takes no time for them.
_WAY = ("Pending", "Canary", "Releasing", "Converged")
_BAR_WIDTH = 40
_COLOURS = {
    "Converged": "green",
    "converged": "green",
    "online": "green",
    "Completed": "green",
    "Failed": "red",
    "failed": "red",
    "offline": "red",
    "Canary": "cyan",
    "Releasing": "cyan",
    "Running": "cyan",
    "released": "cyan",
    "Released": "cyan",
}


@app.command("deployment")
def deployment(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name, or namespace/name.")],
    namespace: Namespace = DEFAULT_NAMESPACE,
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds after which to give up (exit code 6).")] = None,
) -> None:
    """Follow a rollout; ends with 0 when it has converged, 1 when it failed or was ended."""
    raise typer.Exit(watch(client(context), deployment_path(name, namespace), Timing(timeout)))


@app.command("taskrun")
def taskrun(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name, or namespace/name.")],
    namespace: Namespace = DEFAULT_NAMESPACE,
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds after which to give up (exit code 6).")] = None,
) -> None:
    """Follow a task run; ends with 0 when all its devices have completed, 1 when it failed or was ended."""
    raise typer.Exit(watch(client(context), taskrun_path(name, namespace), Timing(timeout)))


@app.command("agentrelease")
def agentrelease(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name, or namespace/name.")],
    namespace: Namespace = DEFAULT_NAMESPACE,
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds after which to give up (exit code 6).")] = None,
) -> None:
    """Follow an agent release; ends with 0 when all its devices run the version, 1 when it failed or was ended."""
    raise typer.Exit(watch(client(context), agentrelease_path(name, namespace), Timing(timeout)))


def watch(server: Client, path: str, timing: Timing) -> int:
    """Show a rollout until it is decided; its exit code."""
    screen = console()
    return _live(server, path, timing) if screen.is_terminal else _lines(server, path, timing)


def _lines(server: Client, path: str, timing: Timing) -> int:
    last = Seen()
    for seen in watching.follow(server, path, timing):
        for line in watching.changes(last, seen):
            say(line)
        last = seen
    return watching.verdict(last)


def _live(server: Client, path: str, timing: Timing) -> int:
    last = Seen()
    with Live(console=console(), auto_refresh=False) as live:
        for seen in watching.follow(server, path, timing):
            last = seen if seen.status else Seen(last.generation, last.status, last.rows, seen.trouble)
            live.update(_picture(last), refresh=True)
    return watching.verdict(last)


def _picture(seen: Seen) -> Group:
    parts: list[RenderableType] = []
    if seen.status:
        parts = [_way(seen), _bar(seen), Text(plain(seen.summary)), _targets(seen)]
    if seen.trouble:
        parts.append(Text(plain(seen.trouble), style="red"))
    return Group(*parts)


def _way(seen: Seen) -> Text:
    """The phases with the present one set off; alone when it is none of the usual ones."""
    here = Text.assemble((seen.phase, f"bold {_COLOURS.get(seen.phase, 'yellow')}"), f" since {watching.since(seen)}")
    if seen.phase not in _WAY:
        return here
    at = _WAY.index(seen.phase)
    before = [Text(phase, style="green") for phase in _WAY[:at]]
    return Text(" → ").join([*before, here, *(Text(phase, style="dim") for phase in _WAY[at + 1 :])])


def _bar(seen: Seen) -> Table:
    done, matched = seen.done, seen.status["counts"]["matched"]
    row = Table.grid(padding=(0, 1))
    row.add_row(ProgressBar(total=max(matched, 1), completed=done, width=_BAR_WIDTH), f"{done}/{matched}")
    return row


def _targets(seen: Seen) -> Table:
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("DEVICE", "CANARY", "STATE", "CONNECTIVITY", "MESSAGE"):
        shown.add_column(head, overflow="fold")
    for row in seen.rows:
        state, connectivity = row["state"], row["connectivity"]
        shown.add_row(
            Text(plain(row["device"])),
            "yes" if row["canary"] else "",
            Text(state, style=_COLOURS.get(state, "")),
            Text(connectivity, style=_COLOURS.get(connectivity, "yellow")),
            Text(plain(row["message"])),
        )
    if omitted := seen.status["targetsOmitted"]:
        shown.add_row(f"and {omitted} more", "", "", "", "")
    return shown
