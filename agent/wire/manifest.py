"""What people write: the manifests of ``fleet.nationtech.io/v1alpha1``.

The one source for validation at every entrance, the canonical form that is hashed into a revision, the OpenAPI
components and the CRD schemas. Strict: an unknown field is an error. Rules that span fields are in
:mod:`agent.wire.rules`.

Structs omit defaults when encoded, so that a field added later (with a default) leaves the hash of every manifest
written before it as it was, and no container is replaced because the control plane was upgraded.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct, field, structs

from agent.wire import names

API_VERSION = "fleet.nationtech.io/v1alpha1"
DEFAULT_NAMESPACE = "default"

DeviceName = Annotated[str, Meta(pattern=names.DNS_LABEL, max_length=63)]
LabelKey = Annotated[str, Meta(pattern=names.LABEL_KEY, max_length=317)]
LabelValue = Annotated[str, Meta(pattern=names.LABEL_VALUE, max_length=63)]
Labels = dict[LabelKey, LabelValue]
GroupName = Annotated[str, Meta(pattern=names.DNS_SUBDOMAIN, max_length=253)]
ContainerName = Annotated[str, Meta(pattern=names.CONTAINER_NAME, max_length=63)]
EnvName = Annotated[str, Meta(pattern=names.ENV_NAME, max_length=255)]
AbsolutePath = Annotated[str, Meta(pattern=names.ABSOLUTE_PATH, max_length=4096)]

#: Limits of a list inside one manifest; generous for people, small for a parser.
MAX_ENTRIES = 256
MAX_ENV_BYTES = 131_072  # the kernel's MAX_ARG_STRLEN: a longer NAME=value could not be passed to a process


class Strict(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all that people write."""

    def __post_init__(self) -> None:
        # msgspec leaves out a default only when it is the very same object; text that a person spelled out is another.
        for each in structs.fields(self):
            value = getattr(self, each.name)
            if value is not each.default and value == each.default:
                structs.force_setattr(self, each.name, each.default)


class EnvVar(Strict):
    name: EnvName
    value: Annotated[str, Meta(max_length=MAX_ENV_BYTES)] = ""


class SecretRef(Strict):
    name: Annotated[str, Meta(pattern=names.SECRET_PART, max_length=63)]
    key: Annotated[str, Meta(pattern=names.SECRET_PART, max_length=63)]


class SecretEnvVar(Strict):
    name: EnvName
    secret: SecretRef


class Volume(Strict):
    host_path: AbsolutePath
    container_path: AbsolutePath
    read_only: bool = False


class PodmanService(Strict):
    """One container (DEP-3); the init container has the same fields (DEP-4)."""

    name: ContainerName
    image: Annotated[str, Meta(pattern=names.IMAGE_REFERENCE, max_length=512)]
    ports: Annotated[list[Annotated[str, Meta(pattern=names.PORT_MAPPING, max_length=80)]], Meta(max_length=256)] = (
        field(default_factory=list)
    )
    env: Annotated[list[EnvVar], Meta(max_length=MAX_ENTRIES)] = field(default_factory=list)
    secret_env: Annotated[list[SecretEnvVar], Meta(max_length=MAX_ENTRIES)] = field(default_factory=list)
    volumes: Annotated[list[Volume], Meta(max_length=MAX_ENTRIES)] = field(default_factory=list)
    restart_policy: Annotated[str, Meta(pattern=names.RESTART_POLICY)] = "unless-stopped"


class PodmanV0(Strict):
    services: Annotated[list[PodmanService], Meta(min_length=1, max_length=64)]
    init_container: PodmanService | None = None


class ReconcileScore(Strict):
    type: Literal["PodmanV0"]
    data: PodmanV0


class SelectorRequirement(Strict):
    key: LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: Annotated[list[LabelValue], Meta(max_length=MAX_ENTRIES)] = field(default_factory=list)


class LabelSelector(Strict):
    """Kubernetes' label selector (DEP-6); all parts must hold."""

    matchLabels: Annotated[Labels, Meta(max_length=64)] = field(default_factory=dict)
    matchExpressions: Annotated[list[SelectorRequirement], Meta(max_length=64)] = field(default_factory=list)


class Rollout(Strict):
    """No percentage, batch, concurrency, pause or approval exists (DEP-8)."""

    strategy: Literal["Immediate"] = "Immediate"


class DeploymentSpec(Strict):
    targetSelector: LabelSelector
    score: ReconcileScore
    allowedGroups: Annotated[list[GroupName], Meta(max_length=64)] = field(default_factory=list)
    rollout: Rollout = field(default_factory=Rollout)


class Metadata(Strict):
    """``namespace`` defaults to ``default`` (DEP-1); labels and annotations change no revision (DEP-9)."""

    name: Annotated[str, Meta(pattern=names.DNS_SUBDOMAIN, max_length=253)]
    namespace: Annotated[str, Meta(pattern=names.DNS_LABEL, max_length=63)] = DEFAULT_NAMESPACE
    labels: Annotated[Labels, Meta(max_length=64)] = field(default_factory=dict)
    annotations: Annotated[
        dict[LabelKey, Annotated[str, Meta(max_length=65_536)]],
        Meta(max_length=64),
    ] = field(default_factory=dict)


class Deployment(Strict):
    apiVersion: Literal["fleet.nationtech.io/v1alpha1"]
    kind: Literal["Deployment"]
    metadata: Metadata
    spec: DeploymentSpec


class SystemUpgradeV1(Strict):
    """The fixed operating system upgrade. No field: callers choose no packages, commands or reboots (TSK-1)."""


class TaskRunSpec(Strict):
    """Exactly one executor; ``deadlineSeconds`` counts from creation (TSK-4): a minute to thirty days."""

    targetSelector: LabelSelector
    deadlineSeconds: Annotated[int, Meta(ge=60, le=2_592_000)]
    systemUpgradeV1: SystemUpgradeV1
    allowedGroups: Annotated[list[GroupName], Meta(max_length=64)] = field(default_factory=list)


class TaskRun(Strict):
    apiVersion: Literal["fleet.nationtech.io/v1alpha1"]
    kind: Literal["TaskRun"]
    metadata: Metadata
    spec: TaskRunSpec


class TaskScheduleSpec(Strict):
    """``schedule``: cron's five fields in ``timeZone``; each time one run of ``template`` is made (TSK-9)."""

    schedule: Annotated[str, Meta(max_length=200)]
    template: TaskRunSpec
    timeZone: Annotated[str, Meta(max_length=63)] = "UTC"


class TaskSchedule(Strict):
    apiVersion: Literal["fleet.nationtech.io/v1alpha1"]
    kind: Literal["TaskSchedule"]
    metadata: Metadata
    spec: TaskScheduleSpec


Version = Annotated[str, Meta(pattern=names.VERSION, max_length=64)]
Architecture = Literal["amd64", "arm64"]
ArtifactUrl = Annotated[str, Meta(max_length=2048)]
#: A release is some 25 MB; a gigabyte is more than any small device should spend on one.
MAX_ARTIFACT_BYTES = 1_073_741_824
ArtifactSize = Annotated[int, Meta(ge=1, le=MAX_ARTIFACT_BYTES)]
Sha256 = Annotated[str, Meta(pattern=names.SHA256)]


class AgentUpgrade(Strict):
    """The agent that a device shall run (UPG-1). ``maxSize`` in bytes; ``sha256`` of the archive at ``url``.

    Any version may follow any other: what is wanted counts, not what is newer (U9).
    """

    version: Version
    architecture: Architecture
    url: ArtifactUrl
    maxSize: ArtifactSize
    sha256: Sha256


class DeviceMetadata(Strict):
    """Devices have no namespace, and their labels are not the manifest's to give (TSK-1): both read as empty."""

    namespace: ClassVar[str] = ""
    labels: ClassVar[dict[str, str]] = {}
    annotations: ClassVar[dict[str, str]] = {}
    name: DeviceName


class DeviceSpec(Strict):
    """Without ``agentUpgrade`` the device keeps the agent that it has."""

    agentUpgrade: AgentUpgrade | None = None


class Device(Strict):
    """Says what an enrolled device shall have; applying it enrols nothing."""

    apiVersion: Literal["fleet.nationtech.io/v1alpha1"]
    kind: Literal["Device"]
    metadata: DeviceMetadata
    spec: DeviceSpec


class Artifact(Strict):
    """Where a release's archive for one architecture lies; the fields are those of :class:`AgentUpgrade`."""

    architecture: Architecture
    url: ArtifactUrl
    maxSize: ArtifactSize
    sha256: Sha256


class AgentReleaseSpec(Strict):
    """One agent version for a selector's devices, canaries first (UPG-10); at most one artifact an architecture."""

    targetSelector: LabelSelector
    version: Version
    artifacts: Annotated[list[Artifact], Meta(min_length=1, max_length=8)]
    deadlineSeconds: Annotated[int, Meta(ge=60, le=2_592_000)]
    allowedGroups: Annotated[list[GroupName], Meta(max_length=64)] = field(default_factory=list)


class AgentRelease(Strict):
    apiVersion: Literal["fleet.nationtech.io/v1alpha1"]
    kind: Literal["AgentRelease"]
    metadata: Metadata
    spec: AgentReleaseSpec


#: Manifest types by ``kind``; the door looks here.
KINDS: dict[str, type[Deployment] | type[TaskRun] | type[TaskSchedule] | type[Device] | type[AgentRelease]] = {
    "Deployment": Deployment,
    "TaskRun": TaskRun,
    "TaskSchedule": TaskSchedule,
    "Device": Device,
    "AgentRelease": AgentRelease,
}
Manifest = Deployment | TaskRun | TaskSchedule | Device | AgentRelease
