"""``fleetctl describe``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from fleet.ctl.client import Client, segment
from fleet.ctl.output import moment, say, table
from fleet.ctl.session import DEFAULT_NAMESPACE, Namespace, agentrelease_path, client, deployment_path, taskrun_path

app = typer.Typer(no_args_is_help=True, help="Everything about one object.")

DIGEST_CHARS = len("sha256:") + 12
#: The newest; ``GET /api/v1/events/`` has all.
EVENTS = 20
_TARGET_HEADS = ("DEVICE", "CANARY", "STATE", "CONNECTIVITY", "SINCE", "WHY IN THE SET", "RUNS", "MESSAGE")


@app.command("deployment")
def deployment(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name, or namespace/name.")],
    namespace: Namespace = DEFAULT_NAMESPACE,
) -> None:
    """Where a deployment stands, on which devices, and how it came to that."""
    server, path = client(context), deployment_path(name, namespace)
    found = server.get(path)
    metadata, status = found["metadata"], found["status"]
    _fields(
        ("Name", f"{metadata['namespace']}/{metadata['name']}"),
        ("UID", metadata["uid"]),
        ("Labels", _pairs(metadata["labels"])),
        ("Created", moment(metadata["creationTimestamp"])),
        ("Generation", f"{metadata['generation']} (observed {status['observedGeneration']})"),
        ("Phase", f"{status['phase']} since {moment(status['since'])}"),
        ("Status", status["message"] or "waits for nothing"),
        ("Devices", _counts(status)),
        ("Groups", ", ".join(found["spec"].get("allowedGroups", []))),
    )
    _section("Targets", _TARGET_HEADS, (_target(row) for row in server.pages(f"{path}targets/")))
    if status.get("images"):
        _section("Images", ("REFERENCE", "DIGEST", "PROVEN BY", "NOTE"), map(_resolved, status["images"]))
    _section("Conditions", ("TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"), map(_condition, status["conditions"]))
    _section("History", ("AT", "GENERATION", "FROM", "TO", "MESSAGE"), _history(server.pages(f"{path}revisions/")))
    _events(server, "Deployment", f"{metadata['namespace']}/{metadata['name']}")


@app.command("taskrun")
def taskrun(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name, or namespace/name.")],
    namespace: Namespace = DEFAULT_NAMESPACE,
) -> None:
    """Where a task run stands, on which devices, and what their journals say."""
    _run(client(context), taskrun_path(name, namespace))


@app.command("agentrelease")
def agentrelease(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name, or namespace/name.")],
    namespace: Namespace = DEFAULT_NAMESPACE,
) -> None:
    """Where an agent release stands, on which devices, and what their journals say."""
    _run(client(context), agentrelease_path(name, namespace))


def _run(server: Client, path: str) -> None:
    found = server.get(path)
    metadata, status = found["metadata"], found["status"]
    _fields(
        ("Name", f"{metadata['namespace']}/{metadata['name']}"),
        ("UID", metadata["uid"]),
        ("Labels", _pairs(metadata["labels"])),
        ("Created", moment(metadata["creationTimestamp"])),
        ("Deadline", moment(status["deadline"])),
        ("Phase", f"{status['phase']} since {moment(status['since'])}"),
        ("Status", status["message"]),
        ("Devices", ", ".join(f"{number} {word}" for word, number in status["counts"].items())),
        ("Groups", ", ".join(found["spec"].get("allowedGroups", []))),
    )
    targets = list(server.pages(f"{path}targets/"))
    _section("Targets", ("DEVICE", "CANARY", "STATE", "STEP", "SINCE", "MESSAGE"), map(_task_target, targets))
    lines = (line for row in targets for line in _journal(row))
    _section("Journals, last lines", ("DEVICE", "AT", "STEP", "EVENT", "MESSAGE"), lines)
    _section("Conditions", ("TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"), map(_condition, status["conditions"]))
    history = ((moment(each["at"]), each["event"], each["message"]) for each in status["history"])
    _section("History", ("AT", "EVENT", "MESSAGE"), history)


@app.command("device")
def device(context: typer.Context, name: Annotated[str, typer.Argument(help="Its name.")]) -> None:
    """What is known of a device, and what it has to run."""
    server, path = client(context), f"devices/{segment(name)}/"
    found = server.get(path)
    metadata, spec, status = found["metadata"], found["spec"], found["status"]
    _fields(
        ("Name", metadata["name"]),
        ("UID", metadata["uid"]),
        ("Enrolled", moment(metadata["creationTimestamp"])),
        ("Connectivity", f"{status['connectivity']} since {moment(status['connectivitySince'])}"),
        ("Last seen", moment(status["lastSeen"])),
        ("Canary", "yes" if spec["canary"] else "no"),
        ("Groups", ", ".join(status["groups"])),
        ("Labels", _pairs(metadata["labels"])),
        ("  by operator", _pairs(spec["labels"])),
        ("  reported", _pairs(status["reportedLabels"])),
        ("Machine", " ".join(status[part] for part in ("architecture", "os", "kernel") if status[part])),
        ("Agent", status["agentVersion"]),
        *_wanted_agent(spec, status),
        ("Updater", status["updaterVersion"]),
        ("Podman", status["podmanVersion"]),
        ("Capabilities", ", ".join(status["capabilities"])),
    )
    if status["problems"]:
        say("\nProblems:")
        for problem in status["problems"]:
            say(f"  {_problem(problem)}")
    heads = ("DEPLOYMENT", "WANTED", "TARGET", "OBSERVED", "GENERATION", "MESSAGE")
    _section("Deployments", heads, map(_on_device, server.pages(f"{path}deployments/")))
    _events(server, "Device", metadata["name"])


def _wanted_agent(spec: dict[str, Any], status: dict[str, Any]) -> Iterable[tuple[str, object]]:
    """The agent that the device shall run, and where that stands; nothing of a device that keeps what it has."""
    wanted, standing = spec.get("agentUpgrade"), status.get("agentUpgrade")
    if wanted and standing:
        yield "  wanted", f"{wanted['version']} by {standing['setBy']} at {moment(standing['setAt'])}"
        yield "  upgrade", f"{standing['state']} since {moment(standing['since'])}: {standing['message']}"


def _fields(*pairs: tuple[str, object]) -> None:
    width = max(len(name) for name, _ in pairs) + 2
    for name, value in pairs:
        say(f"{name + ':':<{width}}{value or '-'}")


def _section(title: str, heads: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
    lines = table(heads, rows)
    say(f"\n{title}:")
    for line in lines if len(lines) > 1 else ["none"]:
        say(f"  {line}")


def _pairs(labels: dict[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in labels.items())


def _counts(status: dict[str, Any]) -> str:
    words = ", ".join(f"{number} {name}" for name, number in status["counts"].items())
    return f"{words}; {status['latecomers']} came after the freeze" if status["latecomers"] else words


def _target(row: dict[str, Any]) -> tuple[object, ...]:
    canary = "yes" if row["canary"] else "no"
    since, runs = moment(row["since"]), _images(row["images"])
    return row["device"], canary, row["state"], row["connectivity"], since, row["reason"], runs, row["message"]


def _task_target(row: dict[str, Any]) -> tuple[object, ...]:
    canary = "yes" if row["canary"] else "no"
    return row["device"], canary, row["state"], row["step"], moment(row["since"]), row["message"]


def _journal(row: dict[str, Any]) -> Iterable[tuple[object, ...]]:
    for each in row["journal"]:
        yield row["device"], moment(each["at"]), each["step"], each["event"], each["message"]


def _images(images: dict[str, str]) -> str:
    """Containers with their digests, cut to what tells them apart; ``-o json`` has the whole."""
    return ",".join(f"{name}={digest[:DIGEST_CHARS]}" for name, digest in images.items())


def _resolved(each: dict[str, Any]) -> tuple[object, ...]:
    return each["reference"], each["digest"] or "not resolved yet", each["provenBy"], each["note"]


def _condition(each: dict[str, Any]) -> tuple[object, ...]:
    return each["type"], each["status"], moment(each["lastTransitionTime"]), each["reason"], each["message"]


def _history(revisions: Iterable[dict[str, Any]]) -> Iterable[tuple[object, ...]]:
    for revision in revisions:
        for change in reversed(revision["history"]):
            at = moment(change["at"])
            yield at, revision["generation"], change["source"], change["target"], change["message"]
        author = revision["createdBy"] or "the system"
        yield moment(revision["createdAt"]), revision["generation"], "", "Pending", f"by {author}"


def _events(server: Client, kind: str, name: str) -> None:
    newest = server.get("events/", kind=kind, name=name, pageSize=EVENTS)["results"]
    _section(
        "Events",
        ("AT", "REASON", "MESSAGE"),
        ((moment(each["at"]), each["reason"], each["message"]) for each in newest),
    )


def _problem(problem: Any) -> str:
    return "; ".join(f"{key}: {value}" for key, value in problem.items()) if isinstance(problem, dict) else str(problem)


def _on_device(row: dict[str, Any]) -> tuple[object, ...]:
    wanted = {"run": "yes", "remove": "to be removed", "nothing": "no"}[row["wanted"]]
    return row["deployment"], wanted, row["targetState"], row["observedState"], row["observedRevision"], row["message"]
