"""The encrypted file of resolved values: whole or done without, and readable with its key only (AGT-10)."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.secrets.cache import Entry, SecretCache
from agent.store import Identity, Store
from agent.wire.messages import SecretValue

IDENTITY = Identity("edge-1", "uid-1", "https://fleet.example")
VALUE = "hunter2-hunter2"
ENTRIES = {"u1": Entry(3, [SecretValue(name="db", key="password", value=VALUE)])}

pytestmark = pytest.mark.clause("AGT-10")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path)
    store.save_identity(IDENTITY, "credential")
    SecretCache(store).save(ENTRIES)
    return store


def opened(folder: Path) -> tuple[SecretCache, Store]:
    """As after a start of the agent."""
    store = Store(folder)
    store.identity()
    return SecretCache(store), store


def test_values_are_there_after_a_restart_and_in_no_file(store: Store):
    cache, again = opened(store.folder)
    assert cache.load() == ENTRIES
    assert again.early == []
    for path in store.folder.iterdir():
        assert VALUE.encode() not in path.read_bytes(), path
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(value=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_value_comes_back(store: Store, value: str):
    entries = {"u1": Entry(1, [SecretValue(name="a", key="b", value=value)])}
    SecretCache(store).save(entries)
    assert opened(store.folder)[0].load() == entries


def test_a_torn_file_is_set_aside_wherever_it_is_torn(store: Store):
    path = store.folder / "secrets.cache"
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        cache, again = opened(store.folder)
        assert cache.load() == {}, length
        assert [problem.reason for problem in again.early] == ["StateFileSetAside"], length
        assert not path.exists()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(data=st.data())
def test_a_changed_byte_is_noticed(store: Store, data: st.DataObject):
    SecretCache(store).save(ENTRIES)
    path = store.folder / "secrets.cache"
    whole = path.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    path.write_bytes(whole[:place] + bytes([whole[place] ^ data.draw(st.integers(1, 255))]) + whole[place + 1 :])
    assert opened(store.folder)[0].load() in ({}, ENTRIES)


@pytest.mark.parametrize(
    "break_it",
    [
        lambda folder: (folder / "secrets.key").unlink(),
        lambda folder: (folder / "secrets.key").write_bytes(b"k" * 32),
        lambda folder: (folder / "secrets.key").write_bytes(b"short"),
    ],
)
def test_without_its_key_the_file_is_set_aside_and_values_are_resolved_anew(store: Store, break_it):
    break_it(store.folder)
    cache, again = opened(store.folder)
    assert cache.load() == {}
    assert any("secrets.cache cannot be decrypted with the key in secrets.key" in p.message for p in again.early)
    cache.save(ENTRIES)
    assert opened(store.folder)[0].load() == ENTRIES


def test_the_file_of_another_device_is_not_taken(store: Store):
    store.save_identity(Identity("edge-2", "uid-2", IDENTITY.url), "credential")
    cache, again = opened(store.folder)
    assert cache.load() == {}
    assert "belongs to another device" in again.early[0].message


@pytest.mark.parametrize("name", ["secrets.cache", "secrets.key"])
def test_a_file_that_cannot_be_written_is_reported_and_not_fatal(tmp_path: Path, name: str):
    store = Store(tmp_path)
    store.save_identity(IDENTITY, "credential")
    if name == "secrets.cache":
        store.secrets_key()
    (tmp_path / name).mkdir()
    SecretCache(store).save(ENTRIES)
    assert any(p.reason == "StateNotSaved" and name in p.message for p in store.early)
    assert VALUE not in repr(store.early)


def test_nothing_shows_a_value_in_its_repr():
    assert VALUE not in repr(ENTRIES)
