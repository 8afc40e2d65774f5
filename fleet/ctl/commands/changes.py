"""``fleetctl retarget``, ``end``, ``delete`` and ``forget-device``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer
import yaml

from fleet.ctl.client import Client
from fleet.ctl.commands.apply import texts
from fleet.ctl.errors import Exit, Refused
from fleet.ctl.output import say
from fleet.ctl.session import DEFAULT_NAMESPACE, Namespace, client, deployment_path, full_name
from fleet.ctl.watching import EVERY_SECONDS, Timing

#: Kinds that are deleted by commands of their own.
OWN_COMMANDS = {
    "TaskRun": "fleetctl taskrun",
    "AgentRelease": "fleetctl agentrelease",
    "TaskSchedule": "fleetctl schedule",
}
Name = Annotated[str, typer.Argument(help="Name of a deployment, or namespace/name.")]


def retarget(context: typer.Context, name: Name, namespace: Namespace = DEFAULT_NAMESPACE) -> None:
    """Roll the same spec out again to the devices that match now, latecomers included."""
    found = client(context).call("POST", f"{deployment_path(name, namespace)}retarget/")
    generation = found["metadata"]["generation"]
    say(f"deployment {full_name(name, namespace)} retargeted: generation {generation} freezes its targets anew")


def end(context: typer.Context, name: Name, namespace: Namespace = DEFAULT_NAMESPACE) -> None:
    """Release nothing more of a rollout, for good. What runs keeps running; this is no pause."""
    found = client(context).call("POST", f"{deployment_path(name, namespace)}end/")
    say(f"deployment {full_name(name, namespace)}: {found['status']['phase']}. {found['status']['message']}")


def forget_device(
    context: typer.Context,
    name: Name,
    device: Annotated[str, typer.Argument(help="The device that will not come back.")],
    namespace: Namespace = DEFAULT_NAMESPACE,
) -> None:
    """Wait no more for a device in a deletion. Should it come back, it removes the containers by itself."""
    left = client(context).call("POST", f"{deployment_path(name, namespace)}forget-device/", body={"device": device})
    words = f"it is still being deleted. {left['status']['message']}" if left else "it is deleted now"
    say(f"deployment {full_name(name, namespace)} gave up {device}; {words}")


def delete(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of a deployment, or namespace/name.")] = "",
    *,
    filename: Annotated[str, typer.Option("--filename", "-f", help="Delete what these manifests name.")] = "",
    namespace: Namespace = DEFAULT_NAMESPACE,
    wait: Annotated[bool, typer.Option("--wait", help="Until every device has proven the removal.")] = False,
    timeout: Annotated[float | None, typer.Option(min=0, help="Of --wait, in seconds for each.")] = None,
) -> None:
    """Take deployments off all their devices."""
    if bool(name) == bool(filename):
        raise Refused("give either a name or -f FILE", Exit.USAGE)
    wanted = [(name, namespace)] if name else list(_named(filename, namespace))
    server = client(context)
    waiting = [(each, said) for each in wanted if (said := _delete(server, *each)) is not None]
    for each, said in waiting if wait else ():
        _wait(server, *each, said, Timing(timeout))


def _delete(server: Client, name: str, namespace: str) -> str | None:
    """The sentence that says what it waits for; None when it is gone already."""
    left = server.call("DELETE", deployment_path(name, namespace))
    words = f"is being deleted. {left['status']['message']}" if left else "deleted"
    say(f"deployment {full_name(name, namespace)} {words}".rstrip())
    return str(left["status"]["message"]) if left else None


def _wait(server: Client, name: str, namespace: str, said: str, timing: Timing) -> None:
    """Until it is gone; the sentence is shown whenever it changes.

    Raises:
        Refused: with code 6 when the time is up.
    """
    begun = timing.clock()
    while True:
        try:
            said = _tell_if_new(server.get(deployment_path(name, namespace))["status"]["message"], said)
        except Refused as refused:
            if refused.code is Exit.NOT_FOUND:
                say(f"deployment {full_name(name, namespace)} deleted")
                return
            if refused.code is not Exit.UNREACHABLE:
                raise
            said = _tell_if_new(str(refused), said)
        if timing.limit is not None and timing.clock() - begun >= timing.limit:
            raise Refused(
                f"{full_name(name, namespace)} is not gone after {timing.limit:g} s: {said}", Exit.UNREACHABLE
            )
        timing.sleep(EVERY_SECONDS)


def _tell_if_new(sentence: str, said: str) -> str:
    if sentence and sentence != said:
        say(sentence)
    return sentence


def _named(source: str, namespace: str) -> Iterator[tuple[str, str]]:
    """What the manifests call their deployments; the server judges the names."""
    for file, data in texts(source):
        try:
            documents = [each for each in yaml.safe_load_all(data) if each is not None]
            for kind in (each.get("kind") for each in documents):
                if kind in OWN_COMMANDS:
                    raise Refused(f"{file}: has a {kind}; delete it with: {OWN_COMMANDS[kind]} delete NAME", Exit.USAGE)
            for metadata in (each["metadata"] for each in documents):
                yield _text(metadata["name"]), _text(metadata.get("namespace", namespace))
        except (yaml.YAMLError, KeyError, TypeError, AttributeError, RecursionError):
            raise Refused(f"{file}: is no YAML with manifests that have metadata.name", Exit.USAGE) from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
