"""``fleetctl taskrun`` and ``fleetctl agentrelease``: what may be done with a run of either kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from fleet.ctl.output import say
from fleet.ctl.session import DEFAULT_NAMESPACE, Namespace, agentrelease_path, client, full_name, taskrun_path

Name = Annotated[str, typer.Argument(help="Its name, or namespace/name.")]
Path = Callable[[str, str], str]


def _commands(kind: str, path: Path, text: str) -> typer.Typer:
    """The same commands for runs of one kind."""
    app = typer.Typer(no_args_is_help=True, help=text)

    @app.command("end")
    def end(context: typer.Context, name: Name, namespace: Namespace = DEFAULT_NAMESPACE) -> None:
        """Release nothing more, for good. A device that has begun finishes."""
        found = client(context).call("POST", f"{path(name, namespace)}end/")
        say(f"{kind} {full_name(name, namespace)}: {found['status']['phase']}. {found['status']['message']}")

    @app.command("delete")
    def delete(context: typer.Context, name: Name, namespace: Namespace = DEFAULT_NAMESPACE) -> None:
        """Release nothing more and free the name. A device that has begun finishes; the run stays in the history."""
        client(context).call("DELETE", path(name, namespace))
        say(f"{kind} {full_name(name, namespace)} deleted")

    @app.command("recreate")
    def recreate(context: typer.Context, name: Name, namespace: Namespace = DEFAULT_NAMESPACE) -> None:
        """A new run of the same for the devices that failed in this one."""
        made = client(context).call("POST", f"{path(name, namespace)}recreate/")
        again = full_name(made["metadata"]["name"], made["metadata"]["namespace"])
        say(f"{kind} {again} created for the devices that failed in {full_name(name, namespace)}")

    @app.command("give-up")
    def give_up(
        context: typer.Context,
        name: Name,
        device: Annotated[str, typer.Argument(help="A device that has begun and is not heard any more.")],
        namespace: Namespace = DEFAULT_NAMESPACE,
    ) -> None:
        """Wait no more for a device: it counts as failed, and may be asked for another upgrade."""
        found = client(context).call("POST", f"{path(name, namespace)}give-up/", body={"device": device})
        say(f"{kind} {full_name(name, namespace)} gave up {device}: {found['status']['message']}")

    return app


app = _commands("taskrun", taskrun_path, "End, delete or repeat a task run, or give up a device of it.")
agent_releases = _commands(
    "agentrelease", agentrelease_path, "End, delete or repeat an agent release, or give up a device of it."
)
