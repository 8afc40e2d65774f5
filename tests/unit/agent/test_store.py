"""The state folder: what is written is read again, and nothing that is found in it ends the agent."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.store import Identity, KeptDesired, KeptReports, Store, StoreBusy
from agent.wire import canonical
from agent.wire.messages import DeploymentDocument, DeploymentReport, DeploymentState, DesiredItem, DesiredState
from tests.support.fake_control import score, service

IDENTITY = Identity("edge-1", "uid-1", "https://fleet.example")
STATE = KeptDesired(
    DesiredState(
        device="edge-1",
        uid="uid-1",
        version=7,
        epoch=2,
        items=[DesiredItem(kind="deployment", key="u1", version=3, hash="a" * 64)],
    ),
    '"2.7"',
)
REPORTS = KeptReports(128, [DeploymentReport(uid="u1", revision=3, state=DeploymentState.CONVERGED, since=5.5)])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path)
    store.save_identity(IDENTITY, "secret-credential")
    store.save_desired(STATE)
    store.save_reports(REPORTS)
    return store


def opened(folder: Path) -> Store:
    store = Store(folder)
    store.identity()
    return store


def test_what_was_kept_is_there_after_a_restart(store: Store):
    again = opened(store.folder)
    assert again.identity() == IDENTITY
    assert again.credential() == "secret-credential"
    assert again.desired() == STATE
    assert again.reports() == REPORTS
    assert again.device_key() == store.device_key()
    assert again.early == []


@pytest.mark.clause("DEV-1")
def test_credential_and_key_are_readable_by_their_owner_only(store: Store):
    store.device_key()
    for name in ("credential", "device.key"):
        assert stat.S_IMODE((store.folder / name).stat().st_mode) == 0o600


@pytest.mark.clause("AGT-8")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(data=st.data())
def test_any_damage_to_any_file_is_set_aside_and_said(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject):
    folder = tmp_path_factory.mktemp("state")
    store = Store(folder)
    store.save_identity(IDENTITY, "secret-credential")
    store.save_desired(STATE)
    store.save_reports(REPORTS)
    path = folder / data.draw(st.sampled_from(["desired.json", "reports.json"]))
    whole = path.read_bytes()
    damaged = data.draw(
        st.one_of(
            st.integers(0, len(whole) - 1).map(lambda end: whole[:end]),
            st.binary(max_size=64),
            st.tuples(st.integers(0, len(whole) - 1), st.integers(1, 255)).map(
                lambda flip: whole[: flip[0]] + bytes([whole[flip[0]] ^ flip[1]]) + whole[flip[0] + 1 :]
            ),
            st.sampled_from([b"[" * 5000, b"{}", b"null", b"\xff\xfe"]),
        )
    )
    path.write_bytes(damaged)
    again = opened(folder)
    found = {"desired.json": again.desired, "reports.json": again.reports}[path.name]()
    if found in (STATE, REPORTS):
        return  # the damage was in white space or in a digit's spelling
    assert found in (None, KeptReports())
    (problem,) = again.early
    assert problem.reason == "StateFileSetAside"
    assert str(path) in problem.message
    assert path.with_name(f"{path.name}.set-aside").read_bytes() == damaged


@pytest.mark.clause("AGT-8")
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda text: text.replace(b'"format":1', b'"format":2'), "has format 2, this agent reads up to 1"),
        (lambda text: text.replace(b"uid-1", b"uid-2"), "belongs to another device or is another file"),
        (lambda text: text.replace(b'"version":7', b'"version":8'), "is torn"),
        (lambda text: b"", "is torn or foreign"),
    ],
    ids=["of a later agent", "of another device", "a bit flipped", "empty"],
)
def test_why_a_file_was_set_aside_is_said(store: Store, spoil, said: str):
    path = store.folder / "desired.json"
    path.write_bytes(spoil(path.read_bytes()))
    again = opened(store.folder)
    assert again.desired() is None
    (problem,) = again.early
    assert problem.message == f"{path} {said}; it was renamed to {path}.set-aside, and the agent goes on without it"


@pytest.mark.clause("AGT-8")
def test_a_torn_identity_is_replaced_by_its_copy(store: Store):
    (store.folder / "identity.json").write_bytes(b"{")
    again = Store(store.folder)
    assert again.identity() == IDENTITY
    assert [problem.reason for problem in again.early] == ["StateFileSetAside"]


def test_a_document_must_have_the_hash_in_its_name(store: Store):
    document = DeploymentDocument(uid="u", namespace="lab", name="a", revision=1, score=score(service("a", "r/a:1")))
    data = canonical.encode(document)
    right = hashlib.sha256(data).hexdigest()
    store.save_document(right, data)
    store.save_document("b" * 64, data)
    assert store.document(right, DeploymentDocument) == document
    assert store.document("b" * 64, DeploymentDocument) is None
    assert "does not have the hash" in store.early[0].message
    store.forget_documents(set())
    assert store.document(right, DeploymentDocument) is None


def test_two_agents_cannot_share_a_state_folder(store: Store):
    with store.lock(), pytest.raises(StoreBusy, match="another fleet-agent works with"):
        Store(store.folder).lock()
    Store(store.folder).lock().close()


@pytest.mark.clause("AGT-8")
def test_an_agent_that_starts_removes_what_a_killed_one_left_half_written(store: Store):
    before = {path for path in store.folder.rglob("*") if path.is_file()}
    (store.folder / "documents").mkdir(exist_ok=True)
    for name in (".desired.json.0123abcd", "documents/.d.json.89abcdef"):
        (store.folder / name).write_bytes(b"{")
    (store.folder / ".note.of-a-person").touch()
    store.lock().close()
    left = {path for path in store.folder.rglob("*") if path.is_file()}
    assert left - before == {store.folder / "lock", store.folder / ".note.of-a-person"}


@pytest.mark.clause("AGT-8")
def test_a_full_disk_leaves_the_old_file_is_said_and_costs_nothing_else(store: Store, monkeypatch: pytest.MonkeyPatch):
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    solved: list[str] = []
    store.solved = solved.append
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        store.save_reports(KeptReports(999))
    (problem,) = store.early
    assert problem.reason == "StateNotSaved"
    assert "reports.json cannot be written: No space left on device" in problem.message
    assert opened(store.folder).reports() == REPORTS
    assert not list(store.folder.glob(".*"))
    store.save_reports(KeptReports(1000))
    assert solved == ["StateNotSaved"]
    assert opened(store.folder).reports() == KeptReports(1000)
