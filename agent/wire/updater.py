"""What an agent may say to its device's root updater over the socket, and what it hears (protocol 1).

One connection carries one request line and one reply line of JSON. Requests are strict: an unknown field, a wrong type
or a number out of its range is refused, and no field can carry a command, package, path or repository (SYS-7): an agent
upgrade carries exactly the fields of UPG-1. Replies
are tolerant, so that an agent and an updater of different versions understand each other.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from agent.wire.manifest import AgentUpgrade, Version
from agent.wire.messages import MAX_JOURNAL_ENTRIES, AttemptState, JournalEntry, Message

UPDATER_PROTOCOL = 1
DEFAULT_SOCKET = "/run/harmony-fleet/updater.sock"
MAX_REQUEST_BYTES = 4096
MAX_REPLY_BYTES = 4_194_304

#: The executors; the control plane writes them into attempts.
SYSTEM_UPGRADE_V1: Literal["systemUpgradeV1"] = "systemUpgradeV1"
AGENT_UPGRADE_V1: Literal["agentUpgradeV1"] = "agentUpgradeV1"
MAX_REMAINING_SECONDS = 2_592_000
_UUID = (
    r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"  # a line break after it is one character too many
)
Uuid = Annotated[str, Meta(pattern=_UUID, max_length=36)]


class Request(Struct, frozen=True, forbid_unknown_fields=True, tag_field="request"):
    """Base of all that the updater's socket takes."""


class GetStatus(Request, tag="status"):
    """How are you, what can you do, and which attempts do you know? Answered by :class:`UpdaterStatus`."""


class Begin(Request, tag="begin"):
    """Take this attempt on; the same one again changes nothing but the seconds in which it may still begin (TSK-4).

    ``remaining_seconds`` are counted from the receipt of this line, on a clock that nobody can set. Answered by
    :class:`Standing` or :class:`Refusal`.
    """

    attempt: Uuid
    executor: Literal["systemUpgradeV1"]
    remaining_seconds: Annotated[int, Meta(ge=0, le=MAX_REMAINING_SECONDS)]


class BeginAgentUpgrade(Request, tag="begin-agent-upgrade"):
    """As :class:`Begin`, for ``agentUpgradeV1``. The same attempt with another target is refused as ``invalid``."""

    attempt: Uuid
    remaining_seconds: Annotated[int, Meta(ge=0, le=MAX_REMAINING_SECONDS)]
    target: AgentUpgrade


class NoteReady(Request, tag="ready"):
    """The agent that was started for this attempt has authenticated, stored its state and reached Podman (UPG-4).

    ``version`` is its own. Answered by :class:`Noted`, or by :class:`Refusal` when no such attempt waits for that.
    """

    attempt: Uuid
    version: Version


class GetJournal(Request, tag="journal"):
    """At most 200 entries with numbers above ``after``. Answered by :class:`JournalPage` or :class:`Refusal`."""

    attempt: Uuid
    after: Annotated[int, Meta(ge=0, le=1_000_000)] = 0


class NoteContact(Request, tag="contact"):
    """The control plane acknowledged a report of the agent in this boot (SYS-4). Answered by :class:`Noted`."""

    boot_id: Uuid


AnyRequest = GetStatus | Begin | BeginAgentUpgrade | NoteReady | GetJournal | NoteContact


class Standing(Message, tag_field="reply", tag="standing"):
    """Where one attempt stands. ``needs_time``: it has not begun, and the device was started anew since its seconds
    were given; the agent asks the control plane again and sends :class:`Begin` (TSK-4). ``needs_ready``: it waits for
    :class:`NoteReady` from an agent of ``version``. ``executor`` and ``version`` (an agent upgrade's) say what it is.
    """

    attempt: str
    state: AttemptState
    step: str = ""
    message: str = ""
    last_number: int = 0
    needs_time: bool = False
    executor: str = SYSTEM_UPGRADE_V1
    version: str = ""
    needs_ready: bool = False


class UpdaterStatus(Message, tag_field="reply", tag="status"):
    """``repair_required`` is the sentence that says why no attempt is taken on (SYS-6), or empty.

    ``attempts`` are the newest ones that the updater keeps, newest first.
    """

    version: str
    boot_id: str
    protocol: int = UPDATER_PROTOCOL
    capabilities: list[str] = field(default_factory=list)
    repair_required: str = ""
    attempts: list[Standing] = field(default_factory=list)


class JournalPage(Message, tag_field="reply", tag="journal"):
    standing: Standing
    entries: Annotated[list[JournalEntry], Meta(max_length=MAX_JOURNAL_ENTRIES)] = field(default_factory=list)


class Noted(Message, tag_field="reply", tag="noted"):
    """Done; there is nothing to say."""


class Refusal(Message, tag_field="reply", tag="refusal"):
    """Nothing was done. ``reason`` is for programs, ``message`` one sentence for people.

    ``busy``: another attempt is open, try again later. ``repair-required``: root has to help first. ``expired``: no
    seconds are left. ``unknown``: no such attempt, or none that waits for this. ``invalid``: the request could not be
    read or has a field out of its range. ``not-allowed``: the peer is not the agent's user.
    """

    reason: Literal["busy", "repair-required", "expired", "unknown", "invalid", "not-allowed"]
    message: str


AnyReply = UpdaterStatus | Standing | JournalPage | Noted | Refusal
