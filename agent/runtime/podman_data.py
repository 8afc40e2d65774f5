"""Podman's JSON as the agent's plain data, and back. Pure."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from agent.runtime.base import Container, ContainerSpec, Image, Login, State
from agent.wire.ports import PortMapping

#: Tells whether a process id of the runtime belongs to no living process.
IsGone = Callable[[int], bool]

#: What registries and Podman say when a login is missing or wrong.
_WANTS_LOGIN = re.compile(
    r"unauthorized|authentication required|invalid username/password|access .*denied|denied: |\b40[13] \(?forbidden",
    re.I,
)
_STATES = {
    "configured": State.CREATED,
    "created": State.CREATED,
    "initialized": State.CREATED,
    "running": State.RUNNING,
    "paused": State.PAUSED,
    "stopping": State.STOPPING,
    "stopped": State.STOPPED,
    "exited": State.EXITED,
}
#: What Podman shows of containers that others keep in the same storage; a ghost is one that nobody keeps any more.
_STORAGE, _NOBODYS = "storage", ["storage"]


def without_tag(reference: str) -> str:
    """``name:tag@digest`` as ``name@digest``: the digest says it all, and not every version takes both."""
    name, at, digest = reference.partition("@")
    if not at:
        return reference
    path, colon, tag = name.rpartition(":")
    return f"{path}@{digest}" if colon and "/" not in tag else reference


def listed(entry: Mapping[str, Any], is_gone: IsGone) -> Container:
    """An entry of Podman's list."""
    pid = int(entry.get("Pid") or 0)
    return Container(
        id=entry["Id"],
        name=(entry.get("Names") or [""])[0],
        state=State.GHOST if _is_ghost(entry) else _state(str(entry.get("State", "")), pid, is_gone),
        image_id=entry.get("ImageID", ""),
        labels=entry.get("Labels") or {},
        ports=tuple(_listed_ports(entry.get("Ports") or [])),
        created_at=_seconds(str(entry.get("Created") or "")),
        started_at=max(0.0, float(entry.get("StartedAt") or 0)),
        finished_at=max(0.0, float(entry.get("ExitedAt") or 0)),
        exit_code=int(entry.get("ExitCode") or 0),
        health=str(entry.get("Status") or ""),
    )


def inspected(found: Mapping[str, Any], is_gone: IsGone) -> Container:
    """What Podman knows of one container."""
    state = found["State"]
    return Container(
        id=found["Id"],
        name=found.get("Name", ""),
        state=_state(str(state.get("Status", "")), int(state.get("Pid") or 0), is_gone),
        image_id=found.get("Image", ""),
        labels=found.get("Config", {}).get("Labels") or {},
        ports=tuple(_bound_ports(found.get("HostConfig", {}).get("PortBindings") or {})),
        created_at=_seconds(str(found.get("Created") or "")),
        started_at=_seconds(state.get("StartedAt", "")),
        finished_at=_seconds(state.get("FinishedAt", "")),
        exit_code=int(state.get("ExitCode") or 0),
        health=str((state.get("Health") or state.get("Healthcheck") or {}).get("Status") or ""),
        restarts=int(found.get("RestartCount") or 0),
    )


def _is_ghost(entry: Mapping[str, Any]) -> bool:
    return entry.get("State") == _STORAGE and entry.get("Command") == _NOBODYS


def _state(text: str, pid: int, is_gone: IsGone) -> State:
    state = _STATES.get(text, State.UNKNOWN)
    return State.LOST if state is State.RUNNING and pid and is_gone(pid) else state


def _listed_ports(entries: list[Mapping[str, Any]]) -> Iterator[PortMapping]:
    for entry in entries:
        for offset in range(int(entry.get("range") or 1)):
            for protocol in str(entry.get("protocol") or "tcp").split(","):
                host, inner = int(entry["host_port"]) + offset, int(entry["container_port"]) + offset
                yield PortMapping(str(entry.get("host_ip") or ""), host, inner, protocol)


def _bound_ports(bindings: Mapping[str, Any]) -> Iterator[PortMapping]:
    for inner, places in bindings.items():
        number, _, protocol = inner.partition("/")
        for place in places or []:
            yield PortMapping(place.get("HostIp") or "", int(place["HostPort"]), int(number), protocol or "tcp")


def _seconds(text: str) -> float:
    """Go's RFC 3339 with nanoseconds as Unix seconds; its zero time as 0."""
    if not text or text.startswith("0001-"):
        return 0.0
    trimmed = re.sub(r"(\.\d{6})\d+", r"\1", text)
    try:
        return datetime.fromisoformat(trimmed).timestamp()
    except ValueError:
        return 0.0


def image(found: Mapping[str, Any], reference: str) -> Image:
    """Registry digests first, those of the asked repository before others.

    An image that was pulled by a manifest list has two of them; the list's is the one to pin, because it fits every
    architecture, and the instance's own is ``Digest``.
    """
    repository = without_tag(reference).partition("@")[0]
    last = repository.rpartition(":")
    repository = last[0] if last[1] and "/" not in last[2] else repository
    own = str(found.get("Digest", ""))
    names = [name.partition("@") for name in found.get("RepoDigests") or []]
    order = sorted(names, key=lambda name: (name[0] != repository, name[2] == own))
    digests = dict.fromkeys([*(name[2] for name in order), own])
    return Image(id=found["Id"], digests=tuple(digest for digest in digests if digest))


def listed_image(entry: Mapping[str, Any]) -> Image:
    """An entry of Podman's list of images."""
    digests = [name.partition("@")[2] for name in entry.get("RepoDigests") or []]
    own = str(entry.get("Digest", ""))
    return Image(entry["Id"], tuple(dict.fromkeys(d for d in [*digests, own] if d)), tuple(entry.get("Names") or []))


def wants_login(message: str) -> bool:
    """Whether a registry's refusal is about who asks."""
    return _WANTS_LOGIN.search(message) is not None


def login_header(login: Login | None) -> dict[str, str]:
    """The header by which Podman takes a login along to the registry; it keeps none of it."""
    if login is None:
        return {}
    said = {"username": login.username, "password": login.password, "serveraddress": login.registry}
    return {"X-Registry-Auth": base64.urlsafe_b64encode(json.dumps(said).encode()).decode()}


def creation(spec: ContainerSpec, log_bytes: int) -> dict[str, Any]:
    """The body that creates a container. ``log_bytes``: its log begins anew when it is as large; 0 is no limit."""
    policy, _, tries = spec.restart_policy.partition(":")
    body: dict[str, Any] = {
        "name": spec.name,
        "image": without_tag(spec.image),
        "env": dict(spec.env),
        "labels": dict(spec.labels),
        "restart_policy": policy,
        "portmappings": [
            {"host_ip": p.host_ip, "host_port": p.host, "container_port": p.container, "protocol": p.protocol}
            for p in spec.ports
        ],
        "mounts": [
            {
                "type": "bind",
                "source": mount.host_path,
                "destination": mount.container_path,
                "options": ["rbind", "ro" if mount.read_only else "rw"],
            }
            for mount in spec.mounts
        ],
    }
    body |= {"log_configuration": {"driver": "k8s-file", "size": log_bytes}} if log_bytes else {}
    return body | ({"restart_tries": int(tries)} if tries else {})
