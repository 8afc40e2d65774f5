"""``fleetctl schedule``: what may be done with a task schedule."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fleet.ctl.output import moment, say
from fleet.ctl.session import DEFAULT_NAMESPACE, Namespace, client, full_name, schedule_path

app = typer.Typer(no_args_is_help=True, help="Suspend, resume, run or delete a task schedule.")
Name = Annotated[str, typer.Argument(help="Name of a task schedule, or namespace/name.")]


@app.command("suspend")
def suspend(context: typer.Context, name: Name, namespace: Namespace = DEFAULT_NAMESPACE) -> None:
    """Make no more runs until it is resumed. A run that is under way goes on."""
    _call(context, name, namespace, "suspend")
    say(f"taskschedule {full_name(name, namespace)} suspended")


@app.command("resume")
def resume(context: typer.Context, name: Name, namespace: Namespace = DEFAULT_NAMESPACE) -> None:
    """Go on with the next time from now; what was missed is not made up."""
    found = _call(context, name, namespace, "resume")
    say(f"taskschedule {full_name(name, namespace)} resumed; next run {moment(found['status']['nextTime'])}")


@app.command("run")
def run(context: typer.Context, name: Name, namespace: Namespace = DEFAULT_NAMESPACE) -> None:
    """Make a run now; refused while one of it is under way."""
    made = _call(context, name, namespace, "run")
    again = full_name(made["metadata"]["name"], made["metadata"]["namespace"])
    say(f"taskrun {again} created for taskschedule {full_name(name, namespace)}")


@app.command("delete")
def delete(context: typer.Context, name: Name, namespace: Namespace = DEFAULT_NAMESPACE) -> None:
    """Make no more runs. Those that were made stay and go on."""
    client(context).call("DELETE", schedule_path(name, namespace))
    say(f"taskschedule {full_name(name, namespace)} deleted")


def _call(context: typer.Context, name: str, namespace: str, verb: str) -> dict[str, Any]:
    found: dict[str, Any] = client(context).call("POST", f"{schedule_path(name, namespace)}{verb}/")
    return found
