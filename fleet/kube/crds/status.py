"""What the control plane writes into ``status`` (DEP-15, TSK-6), in the names of the REST API.

Every field may be missing, because status is written bit by bit. At most 50 targets keep an object small (K8S-8).
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

MOST_TARGETS = 50

Moment = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Generation = Annotated[int, Meta(extra_json_schema={"format": "int64"})]


class Condition(Struct, rename="camel"):
    type: str
    status: Literal["True", "False", "Unknown"]
    last_transition_time: Moment
    reason: str = ""
    message: str = ""
    observed_generation: Generation = 0


class Target(Struct, rename="camel"):
    """A device of the frozen set that has not got there."""

    device: str
    state: str = ""
    message: str = ""
    canary: bool = False
    since: Moment | None = None
    released_at: Moment | None = None
    reason: str = ""
    connectivity: str = ""
    connectivity_since: Moment | None = None


class DeploymentTarget(Target, rename="camel"):
    """A device that does not run the deployment as it shall."""

    observed_revision: Generation | None = None
    images: dict[str, str] = {}


class TaskTarget(Target, rename="camel"):
    """A device that has not completed."""

    step: str = ""
    attempt: str = ""


class Status(Struct, rename="camel"):
    """message says in one sentence what is waited for; targets has the first 50 that have not got there."""

    observed_generation: Generation = 0
    phase: str = ""
    since: Moment | None = None
    message: str = ""
    conditions: list[Condition] = []
    counts: dict[str, Generation] = {}
    frozen_at: Moment | None = None
    opened_at: Moment | None = None
    targets_omitted: Generation = 0


class ResolvedImage(Struct, rename="camel"):
    """What an image without a digest stands for."""

    reference: str
    digest: str = ""
    proven_by: str = ""
    note: str = ""


class DeploymentStatus(Status, rename="camel"):
    """Where the rollout of this generation is."""

    latecomers: Generation = 0
    images: list[ResolvedImage] = []
    targets: Annotated[list[DeploymentTarget], Meta(max_length=MOST_TARGETS)] = []


class TaskRunStatus(Status, rename="camel"):
    """Where the run is, or how it ended."""

    deadline: Moment | None = None
    targets: Annotated[list[TaskTarget], Meta(max_length=MOST_TARGETS)] = []


class AgentUpgradeStatus(Struct, rename="camel"):
    """What became of the agent upgrade that spec asks for."""

    phase: str = ""
    message: str = ""
    version: str = ""
    step: str = ""
    since: Moment | None = None


class DeviceStatus(Struct, rename="camel"):
    """What the device said, and whether it still does."""

    observed_generation: Generation = 0
    connectivity: str = ""
    connectivity_since: Moment | None = None
    last_seen: Moment | None = None
    message: str = ""
    canary: bool = False
    labels: dict[str, str] = {}
    capabilities: list[str] = []
    architecture: str = ""
    os: str = ""
    kernel: str = ""
    boot_id: str = ""
    agent_version: str = ""
    updater_version: str = ""
    podman_version: str = ""
    problems: list[str] = []
    conditions: list[Condition] = []
    agent_upgrade: AgentUpgradeStatus | None = None
