"""Desired state: polled, ordered, kept on disk, and turned into what each deployment's work needs (AGT-8, AGT-9)."""

from __future__ import annotations

from dataclasses import dataclass

from agent.control import ControlError, ControlPlane, Unreachable
from agent.ledger import Ledger
from agent.store import Identity, KeptDesired, Store
from agent.wire import rules
from agent.wire.messages import DEPLOYMENT_KIND, DeploymentDocument, DesiredItem, DesiredState, Problem

WRONG_DEVICE = "DesiredStateOfAnotherDevice"


@dataclass(frozen=True, slots=True)
class Assignment:
    """One deployment of this device. Without a ``document`` there is a ``problem`` that says why."""

    uid: str
    remove: bool = False
    document: DeploymentDocument | None = None
    problem: str = ""

    @property
    def revision(self) -> int:
        return self.document.revision if self.document else 0


class Desired:
    """The newest desired state that this device has accepted, if any."""

    def __init__(self, store: Store, ledger: Ledger, identity: Identity) -> None:
        self._store = store
        self._ledger = ledger
        self._identity = identity
        self._kept = store.desired()
        self._documents: dict[str, DeploymentDocument] = {}
        self._complaints: dict[str, str] = {}
        self._load_documents()

    @property
    def state(self) -> DesiredState | None:
        return self._kept.state if self._kept else None

    def poll(self, control: ControlPlane) -> bool:
        """Ask once; whether anything is to be done differently now.

        Raises:
            ControlError: when the control plane could not be asked; what was known stays.
        """
        polled = control.desired(self._kept.etag if self._kept else "")
        changed = polled is not None and self._accept(KeptDesired(polled.state, polled.etag))
        return self._fetch_documents(control) or changed

    def assignments(self) -> list[Assignment] | None:
        """``None`` when no desired state was ever accepted: then nothing may be removed either."""
        if self._kept is None:
            return None
        return [self._assignment(item) for item in _deployments(self._kept.state)]

    def title(self, uid: str) -> str:
        """The deployment's ``namespace/name``; its uid when the document is not here."""
        found = next((d for d in self._documents.values() if d.uid == uid), None)
        return f"{found.namespace}/{found.name}" if found else uid

    def _assignment(self, item: DesiredItem) -> Assignment:
        if item.remove:
            return Assignment(item.key, remove=True)
        document = self._documents.get(item.hash)
        if document is None:
            reason = self._complaints.get(item.hash, "it was not fetched yet")
            return Assignment(item.key, problem=f"its definition is not here: {reason}")
        faults = rules.check_score(document.score)
        if faults or document.uid != item.key:
            reason = "; ".join(map(str, faults)) or f"it is of uid {document.uid}"
            return Assignment(item.key, problem=f"its definition is refused: {reason}")
        return Assignment(item.key, document=document)

    def _accept(self, new: KeptDesired) -> bool:
        if (new.state.uid, new.state.device) != (self._identity.uid, self._identity.device):
            message = f"the control plane sent the desired state of {new.state.device!r} (uid {new.state.uid})"
            self._ledger.complain(Problem(reason=WRONG_DEVICE, message=f"{message}; it was ignored"))
            return False
        self._ledger.solved(WRONG_DEVICE)
        if self._kept and _order(new.state) < _order(self._kept.state):
            return False
        changed = self._kept is None or new.state != self._kept.state
        self._kept = new
        self._store.save_desired(new)
        self._load_documents()
        return changed

    def _load_documents(self) -> None:
        wanted = self._hashes()
        self._documents = {hash_: found for hash_, found in self._documents.items() if hash_ in wanted}
        self._complaints = {hash_: text for hash_, text in self._complaints.items() if hash_ in wanted}
        for hash_ in wanted - self._documents.keys():
            document = self._store.document(hash_)
            if document is not None:
                self._documents[hash_] = document

    def _fetch_documents(self, control: ControlPlane) -> bool:
        """Whether one that was missing is here now. One that cannot be had does not hold up the others."""
        missing = self._hashes() - self._documents.keys()
        for hash_ in sorted(missing):
            try:
                data, document = control.document(hash_)
            except ControlError as error:
                self._complaints[hash_] = str(error)
                if isinstance(error, Unreachable) or error.retry_after:
                    raise
            else:
                self._documents[hash_] = document
                self._store.save_document(hash_, data)
        if self._kept and not self._hashes() - self._documents.keys():
            self._store.forget_documents(self._hashes())
        return bool(missing & self._documents.keys())

    def _hashes(self) -> set[str]:
        items = _deployments(self._kept.state) if self._kept else []
        return {item.hash for item in items if item.hash and not item.remove}


def _deployments(state: DesiredState) -> list[DesiredItem]:
    return [item for item in state.items if item.kind == DEPLOYMENT_KIND]


def _order(state: DesiredState) -> tuple[int, int]:
    """After a restore of the control plane the epoch grows, and versions begin below the old ones (AGT-9)."""
    return state.epoch, state.version
