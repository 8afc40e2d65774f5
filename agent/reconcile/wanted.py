"""What shall run: a document of the control plane, resolved into containers to create. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent.reconcile import labels
from agent.reconcile.labels import Owner
from agent.runtime.base import ContainerSpec, Mount
from agent.wire import ports
from agent.wire.manifest import PodmanService
from agent.wire.messages import DeploymentDocument

NO_RESTART = "no"


@dataclass(frozen=True, slots=True)
class WantedContainer:
    """``hash`` is what the label of an unchanged one says; ``digest`` is the pinned one, empty when a tag is free.

    ``secrets`` are the references that this agent cannot resolve.
    """

    spec: ContainerSpec
    role: str
    hash: str
    digest: str
    secrets: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def hash_label(self) -> str:
        return labels.SCORE_HASH if self.role == labels.INIT else labels.SERVICE_HASH


@dataclass(frozen=True, slots=True)
class Wanted:
    """One deployment as this device shall have it."""

    uid: str
    title: str
    revision: int
    init: WantedContainer | None
    services: tuple[WantedContainer, ...]

    @property
    def containers(self) -> tuple[WantedContainer, ...]:
        return (self.init, *self.services) if self.init else self.services


def resolve(document: DeploymentDocument, owner: Owner) -> Wanted:
    """The containers of a document.

    A pin of the control plane (DEP-18) changes the image that is run but no hash: the device that proved the digest
    restarts nothing when it becomes the pin.
    """
    score = document.score
    score_hash = owner.keyed_hash(score)
    common = {
        labels.DEVICE: owner.device_uid,
        labels.DEPLOYMENT: f"{document.namespace}/{document.name}",
        labels.UID: document.uid,
    }
    init = score.init_container
    return Wanted(
        uid=document.uid,
        title=f"{document.namespace}/{document.name}",
        revision=document.revision,
        init=None if init is None else _container(init, labels.INIT, score_hash, common, document.images),
        services=tuple(
            _container(service, labels.SERVICE, owner.keyed_hash(service), common, document.images)
            for service in score.services
        ),
    )


def _container(
    service: PodmanService, role: str, hash_: str, common: Mapping[str, str], pins: Mapping[str, str]
) -> WantedContainer:
    image = _pinned(service.image, pins)
    hash_label = labels.SCORE_HASH if role == labels.INIT else labels.SERVICE_HASH
    spec = ContainerSpec(
        name=service.name,
        image=image,
        restart_policy=NO_RESTART if role == labels.INIT else service.restart_policy,
        env={variable.name: variable.value for variable in service.env},
        ports=tuple(mapping for text in service.ports for mapping in ports.parse(text)),
        mounts=tuple(Mount(v.host_path, v.container_path, v.read_only) for v in service.volumes),
        labels={**common, labels.ROLE: role, hash_label: hash_},
    )
    secrets = tuple(f"{item.secret.name}/{item.secret.key} (for {item.name})" for item in service.secret_env)
    return WantedContainer(spec, role, hash_, image.partition("@")[2], secrets)


def _pinned(image: str, pins: Mapping[str, str]) -> str:
    """The reference to run. A pin may be a whole reference or a digest alone; a digest in the score itself wins."""
    pin = pins.get(image, "")
    if "@" in image or not pin:
        return image
    if "@" in pin:
        return pin
    path, colon, tag = image.rpartition(":")
    return f"{path}@{pin}" if colon and "/" not in tag else f"{image}@{pin}"
