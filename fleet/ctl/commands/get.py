"""``fleetctl get``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from fleet.ctl.client import segment
from fleet.ctl.errors import Exit, Refused
from fleet.ctl.output import Format, moment, show
from fleet.ctl.session import DEFAULT_NAMESPACE, agentrelease_path, client, deployment_path, schedule_path, taskrun_path

Output = Annotated[Format, typer.Option("--output", "-o", help="table, yaml, json or name.")]
Row = Callable[[dict[str, Any]], Sequence[object]]


class Kind(StrEnum):
    DEPLOYMENTS = "deployments"
    DEPLOYMENT = "deployment"
    TASKRUNS = "taskruns"
    TASKRUN = "taskrun"
    AGENTRELEASES = "agentreleases"
    AGENTRELEASE = "agentrelease"
    SCHEDULES = "taskschedules"
    SCHEDULE = "taskschedule"
    DEVICES = "devices"
    DEVICE = "device"
    GROUPS = "groups"
    GROUP = "group"
    TOKENS = "tokens"
    TOKEN = "token"  # noqa: S105  (the word)


@dataclass(frozen=True, slots=True)
class Sort:
    """How one sort of object is fetched and shown."""

    path: str
    heads: Sequence[str]
    row: Row
    name: Callable[[dict[str, Any]], str]
    has_labels: bool = False


def _deployment_row(each: dict[str, Any]) -> Sequence[object]:
    metadata, status = each["metadata"], each["status"]
    counts = status["counts"]
    done = f"{counts['converged']}/{counts['matched']}"
    return (
        metadata["namespace"],
        metadata["name"],
        metadata["generation"],
        status["phase"],
        done,
        counts["failed"],
        counts["offline"],
        status["message"],
    )


def _taskrun_row(each: dict[str, Any]) -> Sequence[object]:
    metadata, status = each["metadata"], each["status"]
    counts = status["counts"]
    return (
        metadata["namespace"],
        metadata["name"],
        status["phase"],
        counts["matched"],
        counts["completed"],
        counts["failed"],
        moment(status["deadline"]),
        moment(metadata["creationTimestamp"]),
        status["message"],
    )


def _schedule_row(each: dict[str, Any]) -> Sequence[object]:
    metadata, spec, status = each["metadata"], each["spec"], each["status"]
    return (
        metadata["namespace"],
        metadata["name"],
        spec["schedule"],
        spec.get("timeZone", "UTC"),
        "yes" if status["suspended"] else "no",
        moment(status["nextTime"]),
        status["lastRunPhase"],
        status["message"],
    )


def _device_row(each: dict[str, Any]) -> Sequence[object]:
    status = each["status"]
    own = ("device-id", "canary")
    labels = ",".join(f"{key}={value}" for key, value in each["metadata"]["labels"].items() if key not in own)
    return (
        each["metadata"]["name"],
        status["connectivity"],
        moment(status["lastSeen"]),
        "yes" if each["spec"]["canary"] else "no",
        ",".join(status["groups"]),
        status["agentVersion"],
        labels,
    )


def _group_row(each: dict[str, Any]) -> Sequence[object]:
    return each["name"], len(each["devices"]), ",".join(each["deployers"])


def _token_row(each: dict[str, Any]) -> Sequence[object]:
    revoked = moment(each["revokedAt"]) if each["revokedAt"] else "no"
    uses = f"{each['uses']}/{each['useLimit']}"
    return each["name"], uses, moment(each["expiresAt"]), revoked, ",".join(each["groups"])


def _metadata_name(each: dict[str, Any]) -> str:
    return str(each["metadata"]["name"])


def _full_name(each: dict[str, Any]) -> str:
    return f"{each['metadata']['namespace']}/{each['metadata']['name']}"


def _name(each: dict[str, Any]) -> str:
    return str(each["name"])


DEPLOYMENTS = Sort(
    "deployments/",
    ("NAMESPACE", "NAME", "GENERATION", "PHASE", "CONVERGED", "FAILED", "OFFLINE", "MESSAGE"),
    _deployment_row,
    _full_name,
    has_labels=True,
)
TASKRUNS = Sort(
    "taskruns/",
    ("NAMESPACE", "NAME", "PHASE", "TARGETS", "COMPLETED", "FAILED", "DEADLINE", "CREATED", "MESSAGE"),
    _taskrun_row,
    _full_name,
    has_labels=True,
)
AGENTRELEASES = Sort(
    "agentreleases/",
    ("NAMESPACE", "NAME", "VERSION", "PHASE", "TARGETS", "COMPLETED", "FAILED", "DEADLINE", "CREATED", "MESSAGE"),
    lambda each: (*_taskrun_row(each)[:2], each["spec"]["version"], *_taskrun_row(each)[2:]),
    _full_name,
    has_labels=True,
)
SCHEDULES = Sort(
    "taskschedules/",
    ("NAMESPACE", "NAME", "TIMES", "TIME ZONE", "SUSPENDED", "NEXT", "LAST RUN", "MESSAGE"),
    _schedule_row,
    _full_name,
    has_labels=True,
)
DEVICES = Sort(
    "devices/",
    ("NAME", "CONNECTIVITY", "LAST SEEN", "CANARY", "GROUPS", "AGENT", "LABELS"),
    _device_row,
    _metadata_name,
    has_labels=True,
)
GROUPS = Sort("groups/", ("NAME", "DEVICES", "DEPLOYERS"), _group_row, _name)
TOKENS = Sort("enrolment-tokens/", ("NAME", "USES", "EXPIRES", "REVOKED", "GROUPS"), _token_row, _name)
NAMESPACED = {
    DEPLOYMENTS: deployment_path,
    TASKRUNS: taskrun_path,
    AGENTRELEASES: agentrelease_path,
    SCHEDULES: schedule_path,
}
SORTS = {
    Kind.DEPLOYMENTS: DEPLOYMENTS,
    Kind.DEPLOYMENT: DEPLOYMENTS,
    Kind.TASKRUNS: TASKRUNS,
    Kind.TASKRUN: TASKRUNS,
    Kind.AGENTRELEASES: AGENTRELEASES,
    Kind.AGENTRELEASE: AGENTRELEASES,
    Kind.SCHEDULES: SCHEDULES,
    Kind.SCHEDULE: SCHEDULES,
    Kind.DEVICES: DEVICES,
    Kind.DEVICE: DEVICES,
    Kind.GROUPS: GROUPS,
    Kind.GROUP: GROUPS,
    Kind.TOKENS: TOKENS,
    Kind.TOKEN: TOKENS,
}


def get(
    context: typer.Context,
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    name: Annotated[str, typer.Argument(help="One of them; what has a namespace may be namespace/name.")] = "",
    *,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Where to look.")] = DEFAULT_NAMESPACE,
    everywhere: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Those of all namespaces.")] = False,
    selector: Annotated[str, typer.Option("--selector", "-l", help="Labels, as in role=analyzer,!spare.")] = "",
    output: Output = Format.TABLE,
) -> None:
    """Show one object or a list."""
    sort = SORTS[kind]
    if selector and (name or not sort.has_labels):
        raise Refused(
            "--selector is for lists of deployments, task runs, agent releases, task schedules and devices", Exit.USAGE
        )
    if name:
        found = [client(context).get(_path(sort, name, namespace))]
    else:
        query = {"selector": selector} if selector else {}
        if sort in NAMESPACED and not everywhere:
            query["namespace"] = namespace
        found = list(client(context).pages(sort.path, **query))
    show_sort(sort, found, output, alone=bool(name))


def _path(sort: Sort, name: str, namespace: str) -> str:
    path = NAMESPACED.get(sort)
    return path(name, namespace) if path else f"{sort.path}{segment(name)}/"


def show_sort(sort: Sort, found: list[dict[str, Any]], output: Format, *, alone: bool = False) -> None:
    """Print objects of one sort."""
    show(found, output, heads=sort.heads, row=sort.row, name=sort.name, alone=alone)
