"""Desired state: polled, ordered, kept on disk, and turned into what each deployment's work needs (AGT-8, AGT-9)."""

from __future__ import annotations

from dataclasses import dataclass

from agent.control import ControlError, ControlPlane, Unreachable
from agent.ledger import Ledger
from agent.store import Identity, KeptDesired, Store
from agent.wire import rules
from agent.wire.messages import (
    ATTEMPT_KIND,
    DEPLOYMENT_KIND,
    LOGS_KIND,
    AttemptDocument,
    DeploymentDocument,
    DesiredItem,
    DesiredState,
    LogRequestDocument,
    Problem,
)

WRONG_DEVICE = "DesiredStateOfAnotherDevice"
DEFINITION_MISSING = "DefinitionMissing"

Document = DeploymentDocument | LogRequestDocument | AttemptDocument
#: What is behind an item, by its kind; items of other kinds are for agents of a later version.
DOCUMENTS: dict[str, type[Document]] = {
    DEPLOYMENT_KIND: DeploymentDocument,
    LOGS_KIND: LogRequestDocument,
    ATTEMPT_KIND: AttemptDocument,
}


@dataclass(frozen=True, slots=True)
class Assignment:
    """One deployment of this device. Without its newest ``document`` there is a ``problem`` that says why."""

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
        self._documents: dict[str, Document] = {}
        #: What deployments were until their newest document is here, by uid: that may take as long as an outage.
        self._former: dict[str, DeploymentDocument] = {}
        self._complaints: dict[str, str] = {}
        self._load_documents()

    @property
    def state(self) -> DesiredState | None:
        return self._kept.state if self._kept else None

    @property
    def etag(self) -> str:
        """The control plane's name for that state; empty when there is none."""
        return self._kept.etag if self._kept else ""

    def poll(self, control: ControlPlane) -> bool:
        """Ask for the desired state and its documents; whether anything is to be done differently with a deployment.

        A document that cannot be had may have been replaced since the first answer: then the second one says so.

        Raises:
            ControlError: when the control plane could not be asked; what was known stays.
        """
        changed = self._ask(control)
        changed = self._fetch_documents(control) or changed
        if self._wanted().keys() - self._documents.keys() and self._ask(control):
            self._fetch_documents(control)
            return True
        return changed

    def assignments(self) -> list[Assignment] | None:
        """``None`` when no desired state was ever accepted: then nothing may be removed either."""
        if self._kept is None:
            return None
        return [self._assignment(item) for item in self._items(DEPLOYMENT_KIND)]

    def log_requests(self) -> list[LogRequestDocument]:
        """What somebody wants to read, as far as it is known yet (AGT-16)."""
        found = [(item, self._documents.get(item.hash)) for item in self._items(LOGS_KIND) if not item.remove]
        return [d for item, d in found if isinstance(d, LogRequestDocument) and d.request == item.key]

    def attempts(self) -> list[AttemptDocument]:
        """What this device's updater shall do, as far as it is known yet (TSK-4)."""
        found = [(item, self._documents.get(item.hash)) for item in self._items(ATTEMPT_KIND) if not item.remove]
        return [d for item, d in found if isinstance(d, AttemptDocument) and d.attempt == item.key]

    def title(self, uid: str) -> str:
        """The deployment's ``namespace/name``; its uid when the document is not here."""
        found = self.document(uid)
        return f"{found.namespace}/{found.name}" if found else uid

    def document(self, uid: str) -> DeploymentDocument | None:
        """The deployment's newest document, when it is here. For all threads."""
        deployments = (d for d in list(self._documents.values()) if isinstance(d, DeploymentDocument))
        return next((found for found in deployments if found.uid == uid), None)

    def _assignment(self, item: DesiredItem) -> Assignment:
        if item.remove:
            return Assignment(item.key, remove=True)
        document = self._documents.get(item.hash)
        if not isinstance(document, DeploymentDocument):
            reason = self._complaints.get(item.hash, "it was not fetched yet")
            problem = f"its definition is not here: {reason}"
            return Assignment(item.key, document=self._former.get(item.key), problem=problem)
        faults = rules.check_score(document.score)
        if faults or document.uid != item.key:
            reason = "; ".join(map(str, faults)) or f"it is of uid {document.uid}"
            return Assignment(item.key, problem=f"its definition is refused: {reason}")
        return Assignment(item.key, document=document)

    def _ask(self, control: ControlPlane) -> bool:
        polled = control.desired(self.etag)
        return polled is not None and self._accept(KeptDesired(polled.state, polled.etag))

    def _accept(self, new: KeptDesired) -> bool:
        if (new.state.uid, new.state.device) != (self._identity.uid, self._identity.device):
            message = f"the control plane sent the desired state of {new.state.device!r} (uid {new.state.uid})"
            self._ledger.complain(Problem(reason=WRONG_DEVICE, message=f"{message}; it was ignored"))
            return False
        self._ledger.solved(WRONG_DEVICE)
        if self._kept and _order(new.state) < _order(self._kept.state):
            return False
        before = None if self._kept is None else self._items(DEPLOYMENT_KIND)
        self._kept = new
        self._store.save_desired(new)
        self._load_documents()
        return before != self._items(DEPLOYMENT_KIND)

    def _load_documents(self) -> None:
        wanted = self._wanted()
        self._former |= {
            found.uid: found for found in self._documents.values() if isinstance(found, DeploymentDocument)
        }
        self._documents = {hash_: found for hash_, found in self._documents.items() if hash_ in wanted}
        self._complaints = {hash_: text for hash_, text in self._complaints.items() if hash_ in wanted}
        for hash_ in wanted.keys() - self._documents.keys():
            document = self._store.document(hash_, wanted[hash_])
            if document is not None:
                self._documents[hash_] = document

    def _fetch_documents(self, control: ControlPlane) -> bool:
        """Whether a deployment's that was missing is here now. One that cannot be had does not hold up the others."""
        wanted = self._wanted()
        missing = wanted.keys() - self._documents.keys()
        for hash_ in sorted(missing):
            try:
                data, document = control.document(hash_, wanted[hash_])
            except ControlError as error:
                self._complaints[hash_] = str(error)
                self._ledger.complain(Problem(reason=DEFINITION_MISSING, message=f"a definition is not here: {error}"))
                if isinstance(error, Unreachable) or error.retry_after:
                    raise
            else:
                self._documents[hash_] = document
                self._store.save_document(hash_, data)
        if self._kept and not wanted.keys() - self._documents.keys():
            self._former.clear()
            self._ledger.solved(DEFINITION_MISSING)
            self._store.forget_documents(set(wanted))
        return any(isinstance(self._documents.get(hash_), DeploymentDocument) for hash_ in missing)

    def _items(self, kind: str) -> list[DesiredItem]:
        return [item for item in self._kept.state.items if item.kind == kind] if self._kept else []

    def _wanted(self) -> dict[str, type[Document]]:
        """The documents behind the items, by hash, and what each must be."""
        items = [(item, type_) for kind, type_ in DOCUMENTS.items() for item in self._items(kind)]
        return {item.hash: type_ for item, type_ in items if item.hash and not item.remove}


def _order(state: DesiredState) -> tuple[int, int]:
    """After a restore of the control plane the epoch grows, and versions begin below the old ones (AGT-9)."""
    return state.epoch, state.version
