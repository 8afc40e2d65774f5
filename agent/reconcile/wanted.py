"""What shall run: a document of the control plane, resolved into containers to create. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from agent.reconcile import labels
from agent.reconcile.labels import Owner
from agent.runtime.base import ContainerSpec, Mount
from agent.secrets.problems import label, variable_fault
from agent.secrets.resolution import NONE, Resolution, containers, references
from agent.wire import ports
from agent.wire.manifest import EnvVar, PodmanService, PodmanV0, SecretEnvVar, SecretRef
from agent.wire.messages import DeploymentDocument

NO_RESTART = "no"
#: In place of a hash that depends on a secret value that is not known. No container is what is wanted then.
UNKNOWN = ""


@dataclass(frozen=True, slots=True)
class WantedContainer:
    """``hash`` is what the label of an unchanged one says; ``digest`` is the pinned one, empty when a tag is free."""

    spec: ContainerSpec
    role: str
    hash: str
    digest: str

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def hash_label(self) -> str:
        return labels.SCORE_HASH if self.role == labels.INIT else labels.SERVICE_HASH


@dataclass(frozen=True, slots=True)
class Wanted:
    """One deployment as this device shall have it.

    With ``secret_problems`` nothing of it may be made: a value is not to be had, or does not fit.
    """

    uid: str
    title: str
    revision: int
    init: WantedContainer | None
    services: tuple[WantedContainer, ...]
    secrets: Resolution = NONE
    secret_problems: tuple[str, ...] = ()

    @property
    def containers(self) -> tuple[WantedContainer, ...]:
        return (self.init, *self.services) if self.init else self.services


def resolve(document: DeploymentDocument, owner: Owner, secrets: Resolution = NONE) -> Wanted:
    """The containers of a document, with the values of its secrets as far as they are known (AGT-10).

    A pin of the control plane (DEP-18) changes the image that is run but no hash: the device that proved the digest
    restarts nothing when it becomes the pin.
    """
    maker = _Maker(document, owner, secrets.values)
    score = document.score
    init = score.init_container
    return Wanted(
        uid=document.uid,
        title=maker.title,
        revision=document.revision,
        init=None if init is None else maker.container(init, labels.INIT, _score_hash(score, owner, secrets.values)),
        services=tuple(
            maker.container(service, labels.SERVICE, _service_hash(service, owner, secrets.values))
            for service in score.services
        ),
        secrets=secrets,
        secret_problems=tuple(_secret_problems(score, secrets)),
    )


def image_references(document: DeploymentDocument, owner: Owner) -> set[str]:
    """Every reference by which the document's images may be here: as they are written, and as they are pinned."""
    written = {container.image for container in containers(document.score)}
    return written | {container.spec.image for container in resolve(document, owner).containers}


def _score_hash(score: PodmanV0, owner: Owner, values: Mapping[SecretRef, str]) -> str:
    """Of all fields and all values: any change runs the init container again (AGT-3)."""
    needed = references(score)
    if not needed:
        return owner.keyed_hash(score)
    if not values.keys() >= set(needed):
        return UNKNOWN
    return owner.keyed_hash([score, [values[reference] for reference in needed]])


def _service_hash(service: PodmanService, owner: Owner, values: Mapping[SecretRef, str]) -> str:
    """Of what the container gets: a reference that is called otherwise and means the same changes nothing (AGT-4)."""
    if not service.secret_env:
        return owner.keyed_hash(service)
    if any(item.secret not in values for item in service.secret_env):
        return UNKNOWN
    resolved = [EnvVar(item.name, values[item.secret]) for item in service.secret_env]
    return owner.keyed_hash([msgspec.structs.replace(service, secret_env=[]), resolved])


def _secret_problems(score: PodmanV0, secrets: Resolution) -> Iterator[str]:
    """Each secret that cannot be used, with all the variables that wait for it."""
    users: dict[SecretRef, list[tuple[PodmanService, SecretEnvVar]]] = {}
    for container in containers(score):
        for item in container.secret_env:
            users.setdefault(item.secret, []).append((container, item))
    for reference, places in users.items():
        if reference in secrets.problems:
            where = ", ".join(f"{item.name} of {container.name}" for container, item in places)
            yield f"secret {label(reference)} for {where}: {secrets.problems[reference]}"
            continue
        for container, item in places:
            fault = variable_fault(item.name, secrets.values.get(reference, ""))
            if fault:
                yield f"secret {label(reference)} for {item.name} of {container.name}: {fault}"


@dataclass(frozen=True, slots=True)
class _Maker:
    """What all containers of a deployment have in common."""

    document: DeploymentDocument
    owner: Owner
    values: Mapping[SecretRef, str]

    @property
    def title(self) -> str:
        return f"{self.document.namespace}/{self.document.name}"

    def container(self, service: PodmanService, role: str, hash_: str) -> WantedContainer:
        image = _pinned(service.image, self.document.images)
        spec = ContainerSpec(
            name=service.name,
            image=image,
            restart_policy=NO_RESTART if role == labels.INIT else service.restart_policy,
            env=self._env(service),
            ports=tuple(mapping for text in service.ports for mapping in ports.parse(text)),
            mounts=tuple(Mount(v.host_path, v.container_path, v.read_only) for v in service.volumes),
            labels={
                labels.DEVICE: self.owner.device_uid,
                labels.DEPLOYMENT: self.title,
                labels.UID: self.document.uid,
                labels.ROLE: role,
                labels.SCORE_HASH if role == labels.INIT else labels.SERVICE_HASH: hash_,
            },
        )
        return WantedContainer(spec, role, hash_, image.partition("@")[2])

    def _env(self, service: PodmanService) -> dict[str, str]:
        """Without what is not known: then nothing is created of it either."""
        known = {item.name: self.values[item.secret] for item in service.secret_env if item.secret in self.values}
        return {variable.name: variable.value for variable in service.env} | known


def _pinned(image: str, pins: Mapping[str, str]) -> str:
    """The reference to run. A pin may be a whole reference or a digest alone; a digest in the score itself wins."""
    pin = pins.get(image, "")
    if "@" in image or not pin:
        return image
    if "@" in pin:
        return pin
    path, colon, tag = image.rpartition(":")
    return f"{path}@{pin}" if colon and "/" not in tag else f"{image}@{pin}"
