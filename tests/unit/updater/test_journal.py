"""The journal on disk: whatever a crash or a bad disk leaves of it leads to a documented state (SYS-3)."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.updater import journal
from agent.updater.journal import MAX_JOURNAL_BYTES, Event, Record
from agent.updater.simulated import Faults
from agent.updater.store import MOST_ATTEMPTS, JournalStore
from agent.wire.messages import MAX_MESSAGE_CHARS, AttemptState, JournalEntry
from tests.support.updaters import OTHER, UID, UpdatingDevice

ENDS = {AttemptState.COMPLETED, AttemptState.FAILED, AttemptState.REPAIR_REQUIRED}


def whole_journal(faults: Faults | None = None) -> bytes:
    """Of an upgrade that was run to its end."""
    with tempfile.TemporaryDirectory() as folder:
        device = UpdatingDevice(Path(folder), faults=faults or Faults())
        device.begin()
        device.run()
        return journal_file(Path(folder)).read_bytes()


def journal_file(folder: Path) -> Path:
    (path,) = folder.glob("attempts/*.journal")
    return path


JOURNALS = [whole_journal(), whole_journal(Faults(exit_codes={"upgrade": 100})), whole_journal(Faults(unclean="x"))]


def assert_documented_end(data: bytes, unclean: str) -> None:
    """An updater that starts with these bytes as its journal ends the attempt, and in no loop."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "attempts").mkdir()
        (folder / "attempts" / f"000001-{UID}.journal").write_bytes(data)
        device = UpdatingDevice(folder, faults=Faults(unclean=unclean))
        device.run()
        records = device.attempt().records
        assert device.state in ENDS
        assert [record.number for record in records] == list(range(1, len(records) + 1))
        assert device.machine.boots <= 2


@pytest.mark.clause("SYS-3")
@given(
    data=st.sampled_from(JOURNALS),
    place=st.floats(0, 1),
    unclean=st.sampled_from(["", "libexample1 is half configured"]),
)
@settings(max_examples=150, deadline=None)
def test_any_prefix_of_any_journal_leads_to_a_documented_end(data: bytes, place: float, unclean: str) -> None:
    assert_documented_end(data[: int(place * len(data))], unclean)


@pytest.mark.clause("SYS-3")
@given(
    data=st.sampled_from(JOURNALS),
    place=st.floats(0, 1, exclude_max=True),
    garbage=st.binary(min_size=1, max_size=40),
    unclean=st.sampled_from(["", "libexample1 is half configured"]),
)
@settings(max_examples=150, deadline=None)
def test_garbage_anywhere_in_a_journal_leads_to_a_documented_end(
    data: bytes, place: float, garbage: bytes, unclean: str
) -> None:
    at = int(place * len(data))
    assert_documented_end(data[:at] + garbage + data[at + len(garbage) :], unclean)


@pytest.mark.clause("SYS-3")
def test_a_torn_last_line_is_removed_and_noted_and_nothing_of_it_counts(device: UpdatingDevice) -> None:
    device.begin()
    device.run_to("audit", "ended")
    path = journal_file(device.folder)
    path.write_bytes(path.read_bytes() + b'{"number":12,"step":"reboot","event":"beg')
    device.start()
    assert device.message == "A last line that was cut short, as by a power loss, was removed"
    device.run()
    assert (device.state, device.machine.boots) == (AttemptState.COMPLETED, 2)


@pytest.mark.clause("SYS-3")
@pytest.mark.parametrize(
    ("unclean", "state"), [("", AttemptState.FAILED), ("half configured", AttemptState.REPAIR_REQUIRED)]
)
def test_a_journal_that_cannot_be_read_is_set_aside_and_the_packages_decide(
    device: UpdatingDevice, unclean: str, state: AttemptState
) -> None:
    device.begin()
    device.run_to("upgrade", "began")
    path = journal_file(device.folder)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"\0" * 100 + b"\n", *lines[4:]]))
    device.start()
    aside = path.with_name(f"{path.name}.set-aside")
    assert device.message == (f"The journal of this attempt cannot be read from line 4 on; it was set aside as {aside}")
    assert b"\0" * 100 in aside.read_bytes()
    device.clock.forward(60.0)
    device.faults.unclean = unclean
    device.run()
    assert device.state is state
    assert "The journal could not be read" in device.message
    assert device.machine.boots == 1


@pytest.mark.clause("SYS-3")
def test_a_journal_of_a_later_version_can_be_read(device: UpdatingDevice) -> None:
    device.begin()
    device.run_to("audit", "ended")
    number = device.attempt().last.number + 1
    note = {"number": number, "step": "audit", "event": "noted", "mark": "of-tomorrow", "colour": "red", "boot_id": "x"}
    path = journal_file(device.folder)
    path.write_bytes(path.read_bytes() + journal.sealed(msgspec.json.encode(note)))
    device.start()
    device.run()
    assert device.state is AttemptState.COMPLETED


def test_a_journal_that_grew_beyond_its_limit_is_set_aside(device: UpdatingDevice) -> None:
    device.begin()
    path = journal_file(device.folder)
    path.write_bytes(path.read_bytes() + b"x" * MAX_JOURNAL_BYTES)
    device.start()
    assert f"is larger than {MAX_JOURNAL_BYTES} bytes" in device.message


@pytest.mark.clause("SYS-3")
def test_each_record_is_flushed_before_anything_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def noting(what: str, call: Callable[..., object]) -> Callable[..., object]:
        def noted(*arguments: object) -> object:
            order.append(what)
            return call(*arguments)

        return noted

    device = UpdatingDevice(tmp_path, sync=True)
    monkeypatch.setattr(os, "fsync", noting("flushed", os.fsync))
    monkeypatch.setattr(device.machine, "start", noting("start", device.machine.start))
    monkeypatch.setattr(device.machine, "reboot", noting("reboot", device.machine.reboot))
    device.begin()
    device.run(lambda: device.machine.boots == 2)
    records = len(device.attempt().records)
    assert order.count("flushed") >= records
    assert [order[place - 1] for place, what in enumerate(order) if what in ("start", "reboot")] == ["flushed"] * 3


@pytest.mark.clause("SYS-3")
@pytest.mark.case("U2")
def test_a_full_disk_costs_the_reserve_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = JournalStore(tmp_path)
    store.open()
    attempt = store.create(UID, Record(number=1, step="accepted", event=Event.ENDED))
    reserve = tmp_path / "reserve"
    real = os.fsync

    def fsync(file: int) -> None:
        if reserve.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    attempt = store.append(attempt, Record(number=0, step="preflight", event=Event.BEGAN))
    assert [record.number for record in attempt.records] == [1, 2]
    assert not reserve.exists()


@pytest.mark.case("U1")
@pytest.mark.case("U2")
def test_while_the_journal_cannot_be_written_nothing_is_done(
    device: UpdatingDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    device.begin()
    device.run_to("audit", "ended")
    with monkeypatch.context() as full:
        full.setattr(device.store, "append", no_space)
        for _ in range(20):
            device.turn()
        assert device.standing() == ("The journal cannot be written, so nothing more is done: No space left on device")
        assert device.machine.boots == 1
    device.run()
    assert device.state is AttemptState.COMPLETED


def no_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_write_that_fails_half_way_leaves_the_journal_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = JournalStore(tmp_path)
    store.open()
    attempt = store.create(UID, Record(number=1, step="accepted", event=Event.ENDED))
    before = journal_file(tmp_path).read_bytes()
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", no_space)
        (tmp_path / "reserve").unlink()
        with pytest.raises(OSError, match="No space"):
            store.append(attempt, Record(number=0, step="preflight", event=Event.BEGAN))
    assert journal_file(tmp_path).read_bytes() == before


def test_the_oldest_attempts_are_forgotten_but_never_one_that_waits_for_root(tmp_path: Path) -> None:
    store = JournalStore(tmp_path, sync=False)
    store.open()
    uids = [f"00000000-0000-0000-0000-{number:012d}" for number in range(MOST_ATTEMPTS + 5)]
    for number, uid in enumerate(uids):
        state = AttemptState.REPAIR_REQUIRED if number == 1 else AttemptState.FAILED
        store.create(uid, Record(number=1, step="accepted", event=Event.ENDED, state=state))
    kept = [attempt.uid for attempt in store.attempts()]
    assert len(kept) == MOST_ATTEMPTS
    assert kept[0] == uids[-1]
    assert (uids[0] in kept, uids[1] in kept, uids[2] in kept) == (False, True, False)


def test_messages_are_clipped_at_their_beginning_and_printable() -> None:
    assert journal.clipped("  a\x1b[31mb\n") == "a�[31mb"
    long = journal.clipped("x" * 5000 + "the end")
    assert len(long) == MAX_MESSAGE_CHARS
    assert long.endswith("the end")


def test_what_only_recovery_needs_stays_on_the_device(device: UpdatingDevice) -> None:
    device.begin()
    device.run()
    entry = device.attempt().records[11].entry()
    assert isinstance(entry, JournalEntry)
    assert device.attempt().records[11].kernel == "6.1.0-2-amd64"
    assert b"uptime" in journal_file(device.folder).read_bytes()


def test_another_attempt_has_a_journal_of_its_own(device: UpdatingDevice) -> None:
    device.begin()
    device.run()
    device.begin(OTHER)
    assert [attempt.uid for attempt in device.store.attempts()] == [OTHER, UID]
