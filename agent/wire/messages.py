"""What agents and control plane say to each other (protocol 1).

Tolerant: unknown fields are ignored, new fields have defaults, so that any two versions of the same protocol number
understand each other. Times are Unix seconds on the sender's clock and only shown to people; order follows from
sequence and version numbers.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from agent.wire.manifest import AgentUpgrade, PodmanV0, SecretRef

PROTOCOL = 1
MAX_REPORT_BYTES = 1_048_576
MAX_MESSAGE_CHARS = 4096
#: The largest numbers that the control plane's columns hold.
MAX_SEQUENCE = 2**63 - 1
MAX_GENERATION = 2**31 - 1

#: Kinds of items in the desired state; an agent passes over those that it does not know.
DEPLOYMENT_KIND = "deployment"
LOGS_KIND = "logs"
ATTEMPT_KIND = "attempt"
#: What an updater must be capable of before it is sent a system upgrade (TSK-2).
APT_FULL_UPGRADE_V1 = "AptFullUpgradeV1"
#: The same for an agent upgrade, and for one whose artifact is in a registry (UPG-9).
AGENT_UPGRADE_CAPABILITY = "AgentUpgradeV1"
OCI_ARTIFACT_V1 = "OciArtifactV1"
MAX_JOURNAL_ENTRIES = 200
MAX_LOG_LINES = 2000
MAX_LOG_CHARS = 262_144

Line = Annotated[str, Meta(max_length=512)]


class Message(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Base of all messages between programs."""


# Enrolment (DEV-1) -----------------------------------------------------------------------------------------------


class EnrolRequest(Message):
    """``credential`` is the old one, when a device that is known already enrols again (DEV-2).

    ``device`` is any text here: the control plane says in its own words what a device id looks like.
    """

    device: Annotated[str, Meta(max_length=256)]
    token: Annotated[str, Meta(max_length=256)]
    credential: Annotated[str, Meta(max_length=256)] = ""


class EnrolReply(Message):
    device: str
    uid: str
    credential: str
    protocol: int = PROTOCOL


# Desired state ---------------------------------------------------------------------------------------------------


class DesiredItem(Message):
    """One thing the device shall have, or (``remove``) shall prove that it no longer has.

    ``key`` is the uid of the object: one that is deleted and made again under the same name is another item.
    ``hash`` names the document to fetch; it is empty when ``remove`` is set.
    """

    kind: str
    key: str
    version: int
    hash: str = ""
    remove: bool = False


class DesiredState(Message):
    """Everything the device shall have; what is not in it shall not be there.

    Ordered by (``epoch``, ``version``): an older one is ignored (AGT-9). The epoch grows when the control plane was
    restored from a backup and its versions went back.
    """

    device: str
    uid: str
    version: int
    epoch: int = 1
    protocol: int = PROTOCOL
    items: list[DesiredItem] = field(default_factory=list)


class DeploymentDocument(Message):
    """The document behind an item of kind ``deployment``; shared by all its devices.

    ``images`` pins image references to the digest that the first released device proved (DEP-18).
    """

    uid: str
    namespace: str
    name: str
    revision: int
    score: PodmanV0
    images: dict[str, str] = field(default_factory=dict)


class LogRequestDocument(Message):
    """The document behind an item of kind ``logs``: somebody wants the end of a container's log (AGT-16).

    ``request`` is the item's key; ``deployment`` the uid of the deployment that the container belongs to.
    """

    request: str
    deployment: str
    container: str
    lines: Annotated[int, Meta(ge=1, le=MAX_LOG_LINES)]


class LogReply(Message):
    """The answer to a log request, sent until it is acknowledged. ``problem`` says why there is no text.

    ``text`` is the end of the log: its last lines, cut at the front when they are too long.
    """

    request: Annotated[str, Meta(max_length=64)]
    text: Annotated[str, Meta(max_length=MAX_LOG_CHARS)] = ""
    problem: Annotated[str, Meta(max_length=MAX_MESSAGE_CHARS)] = ""
    is_cut: bool = False


# Attempts (TSK-4, SYS-3) -----------------------------------------------------------------------------------------


class AttemptDocument(Message):
    """The document behind an item of kind ``attempt``: the updater shall run one executor once.

    Nothing in it can carry a command, package, path or repository (SYS-7). ``task`` is ``namespace/name``, for people;
    empty when an attempt comes from the device's own spec. ``agent_upgrade`` belongs to ``agentUpgradeV1`` alone.
    """

    attempt: str
    task: str
    executor: str
    agent_upgrade: AgentUpgrade | None = None


class AttemptOffer(Message):
    """Asked for before an attempt is begun, and again after a reboot: how long it may still begin (TSK-4).

    ``remaining_seconds`` is counted by the updater on a clock that nobody can set; at 0 nothing may begin.
    """

    attempt: str
    executor: str
    remaining_seconds: int


class AttemptState(StrEnum):
    """What a device says of an attempt. ``refused``: nothing was begun; ``repair-required``: root has to help.

    ``rollback-failed``: neither the candidate nor the agent before it could be started; root has to help (UPG-4).
    """

    ACCEPTED = "accepted"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    REFUSED = "refused"
    REPAIR_REQUIRED = "repair-required"
    ROLLBACK_FAILED = "rollback-failed"


class JournalEntry(Message):
    """One line of an attempt's journal; ``number`` counts from 1 without a gap, so sending it twice does no harm.

    ``event`` is ``began``, ``ended``, ``failed`` or ``noted``; ``at`` Unix seconds on the device's clock.
    """

    number: Annotated[int, Meta(ge=1, le=1_000_000)]
    step: Line
    event: Line
    at: float = 0.0
    boot_id: Line = ""
    message: Annotated[str, Meta(max_length=MAX_MESSAGE_CHARS)] = ""


class AttemptReport(Message):
    """Where an attempt stands, and the entries of its journal that were not acknowledged yet."""

    attempt: Annotated[str, Meta(max_length=64)]
    state: AttemptState
    step: Line = ""
    message: Annotated[str, Meta(max_length=MAX_MESSAGE_CHARS)] = ""
    entries: Annotated[list[JournalEntry], Meta(max_length=MAX_JOURNAL_ENTRIES)] = field(default_factory=list)


# Secrets (AGT-10, AGT-15) ----------------------------------------------------------------------------------------


class SecretsRequest(Message):
    """What one deployment of the asking device needs: secret values, and credentials for registries.

    ``registries`` are host names with their port, as image references write them.
    """

    deployment: Annotated[str, Meta(max_length=64)]
    references: Annotated[list[SecretRef], Meta(max_length=512)] = field(default_factory=list)
    registries: Annotated[list[Line], Meta(max_length=64)] = field(default_factory=list)


class SecretValue(Message):
    name: str
    key: str
    value: str

    def __repr__(self) -> str:  # whoever prints or logs a message must not print the value
        return f"SecretValue(name={self.name!r}, key={self.key!r})"


class RegistryLogin(Message):
    registry: str
    username: str
    password: str

    def __repr__(self) -> str:
        return f"RegistryLogin(registry={self.registry!r}, username={self.username!r})"


class SecretsReply(Message):
    """What the device may have of it. What is missing does not exist, or is not for this device: it learns no more."""

    values: list[SecretValue] = field(default_factory=list)
    registries: list[RegistryLogin] = field(default_factory=list)


# Reports ---------------------------------------------------------------------------------------------------------


class DeploymentState(StrEnum):
    """What a device says of one deployment; ``removed`` answers an item with ``remove``."""

    PROGRESSING = "progressing"
    CONVERGED = "converged"
    FAILED = "failed"
    REMOVED = "removed"


class DeploymentReport(Message):
    """The observed state of one deployment; every report lists all that the device knows.

    ``message`` is one sentence: the error when failed, what is waited for when progressing.
    ``images`` are the digests that run, by container name.
    """

    uid: Annotated[str, Meta(max_length=64)]
    revision: Annotated[int, Meta(ge=0, le=MAX_GENERATION)]
    state: DeploymentState
    message: Annotated[str, Meta(max_length=MAX_MESSAGE_CHARS)] = ""
    since: float = 0.0
    images: Annotated[dict[str, str], Meta(max_length=128)] = field(default_factory=dict)


class Facts(Message):
    """What a device says about itself (DEV-4)."""

    labels: Annotated[dict[str, str], Meta(max_length=64)] = field(default_factory=dict)
    capabilities: Annotated[list[Line], Meta(max_length=64)] = field(default_factory=list)
    architecture: Line = ""
    os: Line = ""
    kernel: Line = ""
    boot_id: Line = ""
    agent_version: Line = ""
    updater_version: Line = ""
    podman_version: Line = ""


class Problem(Message):
    """Something on the device that is not about one deployment, such as a state file that was set aside (AGT-8)."""

    reason: Line
    message: Annotated[str, Meta(max_length=MAX_MESSAGE_CHARS)]


class Report(Message):
    """A whole snapshot: it replaces every earlier one, so a lost or late one costs time only.

    ``sequence`` grows by one with each new snapshot of a device; the same one may be sent twice.
    ``epoch`` and ``desired_version`` name the desired state that was acted upon.
    """

    sequence: Annotated[int, Meta(ge=1, le=MAX_SEQUENCE)]
    facts: Facts
    sent_at: float = 0.0
    epoch: int = 1
    desired_version: int = 0
    protocol: int = PROTOCOL
    deployments: Annotated[list[DeploymentReport], Meta(max_length=512)] = field(default_factory=list)
    problems: Annotated[list[Problem], Meta(max_length=64)] = field(default_factory=list)
    attempts: Annotated[list[AttemptReport], Meta(max_length=16)] = field(default_factory=list)


class ReportReply(Message):
    """``sequence`` is acknowledged: committed on the server.

    ``resume_after`` is the highest sequence the server has taken in; an agent that lost its state continues above it,
    otherwise its reports would be taken for old ones. ``notices`` are for the local ``fleet-agent status``, such as a
    reserved label that was ignored (TSK-1).
    """

    sequence: int
    resume_after: int = 0
    notices: list[str] = field(default_factory=list)


class ProblemDocument(Message):
    """RFC 9457, as far as programs read it."""

    title: str = ""
    status: int = 0
    detail: str = ""
    errors: list[dict[str, Any]] = field(default_factory=list)
