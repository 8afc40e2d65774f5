"""Rules of a manifest that no schema can express, and the shape of a complaint.

Pure: each rule takes decoded types and yields :class:`Fault`; :func:`check` runs them all, so that a person learns of
every fault at once (DEP-2). A fault never quotes the value of an ``env``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from zoneinfo import available_timezones

from agent.wire import artifacts, cron, ports
from agent.wire.manifest import (
    MAX_ENV_BYTES,
    AgentRelease,
    AgentReleaseSpec,
    Deployment,
    Device,
    LabelSelector,
    Manifest,
    PodmanService,
    PodmanV0,
    SelectorRequirement,
    TaskSchedule,
    TaskScheduleSpec,
)

#: Spread out, ranges take memory on server and device; nobody needs more than every port for both protocols.
MAX_PORTS = 2 * ports.HIGHEST_PORT
_EVERY_ADDRESS = ""
EVERYTHING_ON_PURPOSE = "matchExpressions: [{key: device-id, operator: Exists}]"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a manifest: where, and what was found and is allowed."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def check(manifest: Manifest) -> list[Fault]:
    """All faults of a decoded manifest that its schema could not see (DEP-3 to DEP-6)."""
    if isinstance(manifest, Device):
        upgrade = manifest.spec.agentUpgrade
        return list(_artifact_url(upgrade.url, "spec.agentUpgrade.url")) if upgrade else []
    if isinstance(manifest, TaskSchedule):
        spec = manifest.spec
        return [*_selector(spec.template.targetSelector, "spec.template.targetSelector"), *_times(spec)]
    faults = list(_selector(manifest.spec.targetSelector, "spec.targetSelector"))
    if isinstance(manifest, AgentRelease):
        faults += _artifacts(manifest.spec)
    return [*faults, *check_score(manifest.spec.score.data)] if isinstance(manifest, Deployment) else faults


def _artifact_url(url: str, path: str) -> Iterator[Fault]:
    if problem := artifacts.url_problem(url):
        yield Fault(path, problem)


def _artifacts(spec: AgentReleaseSpec) -> Iterator[Fault]:
    seen: dict[str, int] = {}
    for index, artifact in enumerate(spec.artifacts):
        yield from _artifact_url(artifact.url, f"spec.artifacts[{index}].url")
        if (first := seen.setdefault(artifact.architecture, index)) != index:
            message = f"{artifact.architecture!r} is the architecture of artifacts[{first}] already"
            yield Fault(f"spec.artifacts[{index}].architecture", message)


def _times(spec: TaskScheduleSpec) -> Iterator[Fault]:
    try:
        cron.read(spec.schedule)
    except ValueError as error:
        yield Fault("spec.schedule", f"{spec.schedule!r} {error}")
    if spec.timeZone not in available_timezones():
        yield Fault("spec.timeZone", f"{spec.timeZone!r} is not known; allowed: names such as Europe/Zurich, or UTC")


def check_score(score: PodmanV0, path: str = "spec.score.data") -> list[Fault]:
    """The faults of a score alone; also what a device checks before it trusts a document."""
    faults: list[Fault] = []
    for where, container in containers(score, path):
        faults += [*_variables(container, where), *_ports(container, where), *_volumes(container, where)]
    faults += _init(score, path)
    faults += _unique_names(score, path)
    faults += _unique_ports(score, path)
    return faults


def containers(score: PodmanV0, path: str = "spec.score.data") -> Iterator[tuple[str, PodmanService]]:
    """Each container of a score with its path, the init container first."""
    if score.init_container is not None:
        yield f"{path}.init_container", score.init_container
    for index, service in enumerate(score.services):
        yield f"{path}.services[{index}]", service


def _selector(selector: LabelSelector, path: str) -> Iterator[Fault]:
    if not selector.matchLabels and not selector.matchExpressions:
        yield Fault(path, f"is empty and would match the whole fleet; to mean all devices: {EVERYTHING_ON_PURPOSE}")
    for index, requirement in enumerate(selector.matchExpressions):
        yield from _requirement(requirement, f"{path}.matchExpressions[{index}].values")


def _requirement(requirement: SelectorRequirement, path: str) -> Iterator[Fault]:
    if requirement.operator in ("In", "NotIn") and not requirement.values:
        yield Fault(path, f"is empty; operator {requirement.operator} needs at least one value")
    if requirement.operator in ("Exists", "DoesNotExist") and requirement.values:
        yield Fault(path, f"is not empty; operator {requirement.operator} takes no values")


def _variables(container: PodmanService, path: str) -> Iterator[Fault]:
    seen: dict[str, str] = {}
    for index, variable in enumerate(container.env):
        here = f"{path}.env[{index}]"
        yield from _once(variable.name, f"{here}.name", seen)
        if "\x00" in variable.value:
            yield Fault(f"{here}.value", "contains a NUL character, which no environment can hold")
        elif len(variable.value.encode("utf-8", "surrogatepass")) > MAX_ENV_BYTES - len(variable.name) - 2:
            yield Fault(f"{here}.value", f"is too long; allowed: {MAX_ENV_BYTES} bytes together with its name")
    for index, secret in enumerate(container.secret_env):
        yield from _once(secret.name, f"{path}.secret_env[{index}].name", seen)


def _once(name: str, path: str, seen: dict[str, str]) -> Iterator[Fault]:
    if name in seen:
        yield Fault(path, f"defines {name} a second time (first in {seen[name]}); allowed: once in env and secret_env")
    seen.setdefault(name, path)


def _ports(container: PodmanService, path: str) -> Iterator[Fault]:
    for index, text in enumerate(container.ports):
        try:
            ports.read(text)
        except ValueError as error:
            yield Fault(f"{path}.ports[{index}]", f"{text!r} {error}")


def _volumes(container: PodmanService, path: str) -> Iterator[Fault]:
    seen: dict[str, int] = {}
    for index, volume in enumerate(container.volumes):
        here = f"{path}.volumes[{index}].container_path"
        target = _place(volume.container_path)
        if target == "/":
            yield Fault(here, "is the root of the container; allowed: a path below /")
        elif target in seen:
            yield Fault(here, f"{volume.container_path!r} is mounted by volumes[{seen[target]}] already")
        seen.setdefault(target, index)


def _place(path: str) -> str:
    """Where Podman mounts it: ``.`` segments, doubled slashes and those at the end mean nothing."""
    return "/" + posixpath.normpath(path).lstrip("/")


def _init(score: PodmanV0, path: str) -> Iterator[Fault]:
    if score.init_container is not None and score.init_container.ports:
        found = len(score.init_container.ports)
        yield Fault(
            f"{path}.init_container.ports",
            f"has {found} {'entry' if found == 1 else 'entries'}; must be empty, "
            "because an init container cannot publish host ports",
        )


def _unique_names(score: PodmanV0, path: str) -> Iterator[Fault]:
    seen: dict[str, str] = {}
    for where, container in containers(score, path):
        if container.name in seen:
            yield Fault(f"{where}.name", f"{container.name!r} is the name of {seen[container.name]} already")
        seen.setdefault(container.name, where)


def _unique_ports(score: PodmanV0, path: str) -> Iterator[Fault]:
    entries = list(_readable_ports(score, path))
    total = sum(len(entry.host) for _where, entry in entries)
    if total > MAX_PORTS:
        yield Fault(path, f"publishes {total} ports; allowed: {MAX_PORTS}, which is each port once for tcp and udp")
        return
    taken = _TakenPorts()
    for where, entry in entries:
        if clash := taken.take(entry, where):
            mapping, owner = clash
            yield Fault(where, f"host port {mapping.host}/{mapping.protocol} is published by {owner} already")


def _readable_ports(score: PodmanV0, path: str) -> Iterator[tuple[str, ports.PortRange]]:
    """Each entry with its path; about those that are no port mapping, :func:`_ports` complains."""
    for where, container in containers(score, path):
        for index, text in enumerate(container.ports):
            with suppress(ValueError):
                yield f"{where}.ports[{index}]", ports.read(text)


class _TakenPorts:
    """Who publishes which port; each look-up is one step, however many addresses there are."""

    def __init__(self) -> None:
        self._by_address: dict[tuple[str, int, str], str] = {}
        self._anywhere: dict[tuple[str, int], str] = {}

    def take(self, entry: ports.PortRange, where: str) -> tuple[ports.PortMapping, str] | None:
        """Take all ports of an entry; the first that somebody has already, and who."""
        clash = None
        for mapping in entry.mappings():
            owner = self._owner(mapping)
            if owner and clash is None:
                clash = mapping, owner
            self._by_address.setdefault((mapping.protocol, mapping.host, _address(mapping)), where)
            self._anywhere.setdefault((mapping.protocol, mapping.host), where)
        return clash

    def _owner(self, mapping: ports.PortMapping) -> str | None:
        """As :meth:`PortMapping.clashes` has it: one without an address clashes with the same port on any."""
        port = (mapping.protocol, mapping.host)
        if ports.is_any(mapping.host_ip):
            return self._anywhere.get(port)
        return self._by_address.get((*port, mapping.host_ip)) or self._by_address.get((*port, _EVERY_ADDRESS))


def _address(mapping: ports.PortMapping) -> str:
    return _EVERY_ADDRESS if ports.is_any(mapping.host_ip) else mapping.host_ip
