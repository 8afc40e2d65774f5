"""``fleetctl logs``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fleet.ctl.client import Client, segment
from fleet.ctl.commands.changes import Name
from fleet.ctl.errors import Exit, Refused
from fleet.ctl.output import say, warn
from fleet.ctl.session import DEFAULT_NAMESPACE, Namespace, client, deployment_path
from fleet.ctl.watching import EVERY_SECONDS, Timing

_WAITING, _ANSWERED, _EXPIRED = "waiting", "answered", "expired"


def logs(
    context: typer.Context,
    name: Name,
    *,
    device: Annotated[str, typer.Option("--device", "-d", help="Needed when several devices have it.")] = "",
    container: Annotated[str, typer.Option("--container", "-c", help="Needed when it has several services.")] = "",
    tail: Annotated[int, typer.Option("--tail", min=1, max=2000, help="How many of the last lines.")] = 200,
    timeout: Annotated[float | None, typer.Option(min=0, help="Wait no longer, in seconds.")] = None,
    namespace: Namespace = DEFAULT_NAMESPACE,
) -> None:
    """The end of a container's log, fetched from the device now. Asking for it is audited."""
    server, path = client(context), f"{deployment_path(name, namespace)}logs/"
    asked = {"device": device, "container": container, "lines": tail}
    made = server.call("POST", path, body={key: value for key, value in asked.items() if value})
    _show(_wait(server, f"{path}{segment(made['id'])}/", made, Timing(timeout)))


def _wait(server: Client, path: str, found: dict[str, Any], timing: Timing) -> dict[str, Any]:
    """The request when it has ended; what it waits for is told on standard error.

    Raises:
        Refused: with code 6 when the time is up.
    """
    begun, said = timing.clock(), ""
    while found["state"] == _WAITING:
        if found["message"] != said:
            said = found["message"]
            warn(said)
        if timing.limit is not None and timing.clock() - begun >= timing.limit:
            raise Refused(f"no log after {timing.limit:g} s: {said}", Exit.UNREACHABLE)
        timing.sleep(EVERY_SECONDS)
        try:
            found = server.get(path)
        except Refused as refused:
            if refused.code is not Exit.UNREACHABLE:
                raise
            found = {**found, "message": str(refused)}
    return found


def _show(ended: dict[str, Any]) -> None:
    if ended["state"] != _ANSWERED:
        code = Exit.UNREACHABLE if ended["state"] == _EXPIRED else Exit.FAILED
        raise Refused(ended["message"], code)
    if ended["isCut"]:
        warn("the beginning is cut off: these lines are longer than a device sends")
    if ended["text"]:
        say(ended["text"].removesuffix("\n"))
    else:
        warn(f"the log of {ended['container']} on {ended['device']} is empty")
