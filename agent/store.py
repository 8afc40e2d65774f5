"""What the agent keeps in its state folder, and how it takes a file that it cannot use (AGT-8).

    identity.json   device id, uid, control plane (twice)     credential   the device credential, 0600 (DEV-1)
    device.key      key of the hashes in labels, 0600         desired.json the last desired state
    documents/      the documents behind it, by hash          reports.json what was reported last, report numbers
    status.json     for ``fleet-agent status``                lock         held by the running agent
    secrets.cache   resolved secrets, encrypted (AGT-10)      secrets.key  the key of that file, 0600
    secrets.refresh somebody wants secrets resolved anew  claims.json  the container names that deployments hold
    attempts.json   what was acknowledged of upgrades

A file that is torn, of another device or of a later format is renamed to ``….set-aside`` and becomes a
:class:`~agent.wire.messages.Problem`; the agent goes on without it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from agent import durable
from agent.reconcile.claims import Claim
from agent.upgrades.memory import KeptAttempts
from agent.wire import canonical
from agent.wire.messages import DeploymentReport, DesiredState, Problem

FORMAT = 1
KEY_BYTES = 32
STATE_FILE_SET_ASIDE = "StateFileSetAside"
STATE_NOT_SAVED = "StateNotSaved"
MAX_STATE_BYTES = 16 * 1024 * 1024
_SECRET_BOX = "secrets.cache"  # noqa: S105  (a file name)
_REFRESH = "secrets.refresh"

T = TypeVar("T", bound=msgspec.Struct)


class Identity(msgspec.Struct, frozen=True):
    """As what this device was enrolled, and where."""

    device: str
    uid: str
    url: str


class KeptDesired(msgspec.Struct, frozen=True):
    """``etag`` is the control plane's, sent back with the next poll."""

    state: DesiredState
    etag: str = ""


class KeptReports(msgspec.Struct, frozen=True):
    """``reserved``: no report was ever sent with a higher number than this."""

    reserved: int = 0
    deployments: list[DeploymentReport] = []


class KeptClaims(msgspec.Struct, frozen=True):
    """By container name."""

    claims: dict[str, Claim] = {}


class _KeptBox(msgspec.Struct, frozen=True):
    """Ciphertext, as base64 in the file."""

    box: bytes


class KeptImage(msgspec.Struct, frozen=True):
    """An image that the agent fetched: the names it got by that, and for how long nothing has used it, if so."""

    names: list[str]
    unused_seconds: float | None = None


class KeptImages(msgspec.Struct, frozen=True):
    """By image id."""

    images: dict[str, KeptImage] = {}


class _Envelope(msgspec.Struct, frozen=True):
    """Says what a file is before it is believed; the digest notices a torn one that is still JSON."""

    format: int
    kind: str
    device_uid: str
    sha256: str
    body: msgspec.Raw


class StoreBusy(Exception):
    """Another agent works with the same state folder."""


class Store:
    """The state folder. ``complain`` hears of every file that was set aside; until it is set, ``early`` collects."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.early: list[Problem] = []
        self.complain: Callable[[Problem], None] = self.early.append
        self.solved: Callable[[str], None] = lambda reason: None
        self._device_uid = ""

    def lock(self) -> IO[bytes]:
        """Hold the folder until the file is closed; what an agent that was killed left half written goes.

        Raises:
            StoreBusy: when another process holds it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        file = (self.folder / "lock").open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise StoreBusy(f"another fleet-agent works with {self.folder}; stop it first") from None
        durable.remove_leftovers(self.folder)
        return file

    def newer_files(self) -> list[str]:
        """Why files of another version cannot be read by this one; changes nothing. Torn ones would be set aside."""
        found = []
        for path in sorted([*self.folder.glob("*.json"), self.folder / _SECRET_BOX]):
            try:
                envelope = msgspec.json.decode(path.read_bytes(), type=_Envelope)
            except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
            if envelope.format > FORMAT:
                found.append(f"{path} has format {envelope.format}, this agent reads up to {FORMAT}")
        return found

    # Enrolment -----------------------------------------------------------------------------------------------------

    def identity(self) -> Identity | None:
        """Kept twice: without it the agent would not know its own containers, and could not even ask."""
        identity = self._load("identity.json", Identity, of_device=False)
        if identity is None:
            identity = self._load("identity.copy.json", Identity, of_device=False)
        self._device_uid = identity.uid if identity else ""
        return identity

    def save_identity(self, identity: Identity, credential: str) -> None:
        """The credential first: an identity without one would look enrolled."""
        durable.write(self.folder / "credential", credential.encode(), mode=durable.PRIVATE)
        self._device_uid = identity.uid
        for name in ("identity.json", "identity.copy.json"):
            durable.write(self.folder / name, self._sealed(name, identity))

    def credential(self) -> str:
        """Empty when there is none."""
        try:
            return (self.folder / "credential").read_text().strip()
        except (OSError, UnicodeDecodeError):
            return ""

    def device_key(self) -> bytes:
        """Made at first use. A new one lets every container be replaced once, so it is kept for good."""
        return self._key("device.key")

    def _key(self, name: str) -> bytes:
        path = self.folder / name
        key = self._read(path)
        if key is not None and len(key) == KEY_BYTES:
            return key
        if key is not None:
            self._set_aside(path, f"has {len(key)} bytes instead of {KEY_BYTES}")
        key = secrets.token_bytes(KEY_BYTES)
        durable.write(path, key, mode=durable.PRIVATE)
        return key

    # Desired state -------------------------------------------------------------------------------------------------

    def desired(self) -> KeptDesired | None:
        return self._load("desired.json", KeptDesired)

    def save_desired(self, kept: KeptDesired) -> None:
        self._save("desired.json", kept)

    def document(self, hash_: str, type_: type[T]) -> T | None:
        """A document that was fetched before; one that does not have its hash any more is set aside."""
        path = self._document_path(hash_)
        data = self._read(path)
        if data is None:
            return None
        try:
            document = msgspec.json.decode(data, type=type_)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self._set_aside(path, "is not a document")
            return None
        if hashlib.sha256(data).hexdigest() != hash_:
            self._set_aside(path, "does not have the hash in its name")
            return None
        return document

    def save_document(self, hash_: str, data: bytes) -> None:
        self._write(self._document_path(hash_), data)

    def forget_documents(self, keep: set[str]) -> None:
        """Remove documents that no desired item names."""
        folder = self.folder / "documents"
        for path in folder.glob("*.json") if folder.is_dir() else ():
            if path.stem not in keep:
                path.unlink(missing_ok=True)

    # Secrets (AGT-10) ----------------------------------------------------------------------------------------------

    def secrets_key(self) -> bytes:
        """Of :meth:`secret_box`; made at first use.

        Raises:
            OSError: when it cannot be written.
        """
        return self._key("secrets.key")

    def has_secret_box(self) -> bool:
        return (self.folder / _SECRET_BOX).exists()

    def secret_box(self) -> bytes | None:
        """The ciphertext that was kept, if any."""
        kept = self._load(_SECRET_BOX, _KeptBox)
        return kept.box if kept else None

    def save_secret_box(self, box: bytes) -> None:
        self._save(_SECRET_BOX, _KeptBox(box))

    def forget_secret_box(self) -> None:
        self._unlink(self.folder / _SECRET_BOX)

    def refuse_secret_box(self, complaint: str) -> None:
        """The file is whole, but what is in it cannot be used."""
        self._set_aside(self.folder / _SECRET_BOX, complaint)

    def order_refresh(self) -> None:
        """Let the agent resolve secrets anew, now or when it runs next."""
        durable.write(self.folder / _REFRESH, b"")

    def is_refresh_ordered(self) -> bool:
        return (self.folder / _REFRESH).exists()

    def refresh_done(self) -> None:
        self._unlink(self.folder / _REFRESH)

    # Reports, images and status ------------------------------------------------------------------------------------

    def reports(self) -> KeptReports:
        return self._load("reports.json", KeptReports) or KeptReports()

    def save_reports(self, kept: KeptReports) -> None:
        self._save("reports.json", kept)

    def images(self) -> dict[str, KeptImage]:
        return (self._load("images.json", KeptImages) or KeptImages()).images

    def save_images(self, images: dict[str, KeptImage]) -> None:
        self._save("images.json", KeptImages(images))

    def claims(self) -> dict[str, Claim]:
        return (self._load("claims.json", KeptClaims) or KeptClaims()).claims

    def save_claims(self, claims: dict[str, Claim]) -> None:
        self._save("claims.json", KeptClaims(claims))

    def attempts(self) -> KeptAttempts:
        return self._load("attempts.json", KeptAttempts) or KeptAttempts()

    def save_attempts(self, kept: KeptAttempts) -> None:
        self._save("attempts.json", kept)

    def save_status(self, status: msgspec.Struct) -> None:
        durable.write(self.folder / "status.json", msgspec.json.encode(status), sync=False)

    def status(self, type_: type[T]) -> T | None:
        try:
            return msgspec.json.decode((self.folder / "status.json").read_bytes(), type=type_)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None

    # Inside --------------------------------------------------------------------------------------------------------

    def _document_path(self, hash_: str) -> Path:
        return self.folder / "documents" / f"{hash_}.json"

    def _save(self, name: str, body: msgspec.Struct) -> None:
        self._write(self.folder / name, self._sealed(name, body))

    def _write(self, path: Path, data: bytes) -> None:
        """A disk that is full costs what would be kept over a restart, not the work and the reports."""
        try:
            durable.write(path, data)
        except OSError as error:
            self.unsaved(path, error)
        else:
            self.solved(STATE_NOT_SAVED)

    def _unlink(self, path: Path) -> None:
        """A disk that can't be written must not end a pass."""
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self.unsaved(path, error)

    def unsaved(self, path: Path, error: OSError) -> None:
        """Report a file that could not be written."""
        message = f"{path} cannot be written: {error.strerror}; a restart of the agent would not know of it"
        self.complain(Problem(reason=STATE_NOT_SAVED, message=message))

    def _sealed(self, name: str, body: msgspec.Struct) -> bytes:
        data = canonical.encode(body)
        sha256 = hashlib.sha256(data).hexdigest()
        return msgspec.json.encode(_Envelope(FORMAT, name, self._device_uid, sha256, msgspec.Raw(data)))

    def _load(self, name: str, type_: type[T], *, of_device: bool = True) -> T | None:
        path = self.folder / name
        data = self._read(path)
        if data is None:
            return None
        complaint, body = self._open(data, name, type_, of_device=of_device)
        if complaint:
            self._set_aside(path, complaint)
        return body

    def _open(self, data: bytes, name: str, type_: type[T], *, of_device: bool) -> tuple[str, T | None]:
        """The body, or a complaint about the file."""
        try:
            envelope = msgspec.json.decode(data, type=_Envelope)
            if envelope.format > FORMAT:
                return f"has format {envelope.format}, this agent reads up to {FORMAT}", None
            if envelope.kind != name or (of_device and envelope.device_uid != self._device_uid):
                return "belongs to another device or is another file", None
            raw = bytes(envelope.body)
            if hashlib.sha256(raw).hexdigest() != envelope.sha256:
                return "is torn", None
            return "", msgspec.json.decode(raw, type=type_)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return "is torn or foreign", None

    def _read(self, path: Path) -> bytes | None:
        """The whole file; ``None`` when there is none, or none that can be read."""
        try:
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_size > MAX_STATE_BYTES:
                    self._set_aside(path, f"is larger than {MAX_STATE_BYTES} bytes")
                    return None
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            self.complain(Problem(reason="StateFileUnreadable", message=f"{path} cannot be read: {error.strerror}"))
            return None

    def _set_aside(self, path: Path, complaint: str) -> None:
        try:
            aside: Any = durable.set_aside(path)
        except OSError as error:
            aside = f"nothing ({error.strerror})"
        message = f"{path} {complaint}; it was renamed to {aside}, and the agent goes on without it"
        self.complain(Problem(reason=STATE_FILE_SET_ASIDE, message=message))
