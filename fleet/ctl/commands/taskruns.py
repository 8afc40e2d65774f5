"""``fleetctl taskrun``: what may be done with a task run."""

from __future__ import annotations

from typing import Annotated

import typer

from fleet.ctl.output import say
from fleet.ctl.session import DEFAULT_NAMESPACE, Namespace, client, full_name, taskrun_path

app = typer.Typer(no_args_is_help=True, help="End, delete or repeat a task run, or give up a device of it.")
Name = Annotated[str, typer.Argument(help="Name of a task run, or namespace/name.")]


@app.command("end")
def end(context: typer.Context, name: Name, namespace: Namespace = DEFAULT_NAMESPACE) -> None:
    """Release nothing more, for good. A device that has begun finishes."""
    found = client(context).call("POST", f"{taskrun_path(name, namespace)}end/")
    say(f"taskrun {full_name(name, namespace)}: {found['status']['phase']}. {found['status']['message']}")


@app.command("delete")
def delete(context: typer.Context, name: Name, namespace: Namespace = DEFAULT_NAMESPACE) -> None:
    """Release nothing more and free the name. A device that has begun finishes; the run stays in the history."""
    client(context).call("DELETE", taskrun_path(name, namespace))
    say(f"taskrun {full_name(name, namespace)} deleted")


@app.command("recreate")
def recreate(context: typer.Context, name: Name, namespace: Namespace = DEFAULT_NAMESPACE) -> None:
    """A new run of the same task for the devices that failed in this one."""
    made = client(context).call("POST", f"{taskrun_path(name, namespace)}recreate/")
    again = full_name(made["metadata"]["name"], made["metadata"]["namespace"])
    say(f"taskrun {again} created for the devices that failed in {full_name(name, namespace)}")


@app.command("give-up")
def give_up(
    context: typer.Context,
    name: Name,
    device: Annotated[str, typer.Argument(help="A device that has begun and is not heard any more.")],
    namespace: Namespace = DEFAULT_NAMESPACE,
) -> None:
    """Wait no more for a device: it counts as failed, and may be asked for another upgrade."""
    found = client(context).call("POST", f"{taskrun_path(name, namespace)}give-up/", body={"device": device})
    say(f"taskrun {full_name(name, namespace)} gave up {device}: {found['status']['message']}")
