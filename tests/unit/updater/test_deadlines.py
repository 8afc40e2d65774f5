"""Until when an attempt may begin, and who may begin one (TSK-4, TSK-5, SYS-6, U8)."""

from __future__ import annotations

import threading

import pytest

from agent.wire.messages import AttemptState
from agent.wire.updater import AnyReply, GetJournal, GetStatus, JournalPage, Refusal, Standing, UpdaterStatus
from tests.support.updaters import OTHER, UID, UpdatingDevice

DAY = 86_400.0


@pytest.mark.clause("TSK-4")
def test_the_seconds_count_on_a_clock_that_nobody_can_set(device: UpdatingDevice) -> None:
    device.begin(seconds=60)
    device.clock.forward(61.0)
    device.faults.clock_offset = -3_600.0
    device.run()
    assert (device.state, device.message) == (
        AttemptState.FAILED,
        "The deadline passed before it could begin; nothing was changed",
    )
    assert device.told() == ["accepted ended", "accepted failed"]


@pytest.mark.clause("TSK-4")
def test_a_wrong_clock_does_not_take_an_attempts_time_away(device: UpdatingDevice) -> None:
    device.begin(seconds=60)
    device.faults.clock_offset = 365 * DAY
    device.run()
    assert device.state is AttemptState.COMPLETED


@pytest.mark.clause("TSK-4")
def test_what_has_begun_is_not_interrupted_when_its_seconds_are_over(device: UpdatingDevice) -> None:
    device.machine.pace.upgrade = 7_200.0
    device.stride = 60.0
    device.begin(seconds=60)
    device.run()
    assert device.state is AttemptState.COMPLETED


@pytest.mark.clause("TSK-4")
def test_after_a_boot_an_attempt_that_has_not_begun_asks_for_new_seconds(device: UpdatingDevice) -> None:
    device.agent = False
    device.begin(seconds=600)
    device.cut_power()
    device.turn()
    standing = status(device).attempts[0]
    assert (standing.state, standing.needs_time) == (AttemptState.ACCEPTED, True)
    assert standing.message == "The device was started anew; waits to hear whether it may still begin"
    reply = device.begin(seconds=300)
    assert isinstance(reply, Standing)
    assert (reply.needs_time, reply.message) == (False, "May begin within 300 seconds")
    device.agent = True
    device.run()
    assert device.state is AttemptState.COMPLETED


@pytest.mark.clause("TSK-4")
def test_after_a_boot_an_attempt_without_seconds_ends_and_the_next_may_begin(device: UpdatingDevice) -> None:
    device.agent = False
    device.begin()
    device.cut_power()
    device.begin(seconds=0)
    device.run()
    assert device.message == "The deadline passed before it could begin; nothing was changed"
    assert isinstance(device.begin(OTHER), Standing)


@pytest.mark.case("U8")
def test_an_attempt_for_which_nobody_says_whether_it_may_begin_ends_after_a_day(device: UpdatingDevice) -> None:
    device.agent = False
    device.stride = 600.0
    device.begin()
    device.cut_power()
    device.run()
    assert device.message == "Nobody said for a day whether it may still begin; nothing was changed"


@pytest.mark.clause("TSK-4")
def test_fewer_seconds_than_before_count_and_more_do_not(device: UpdatingDevice) -> None:
    device.begin(seconds=600)
    device.begin(seconds=6_000)
    assert len(device.attempt().records) == 1
    device.begin(seconds=0)
    device.run()
    assert device.state is AttemptState.FAILED


def test_an_updater_that_is_started_again_in_the_same_boot_begins_what_was_accepted(device: UpdatingDevice) -> None:
    device.begin(seconds=60)
    device.clock.forward(30.0)
    device.start()
    device.run()
    assert device.state is AttemptState.COMPLETED


@pytest.mark.clause("TSK-4")
def test_without_seconds_nothing_is_taken_on(device: UpdatingDevice) -> None:
    assert refusal(device.begin(seconds=0)) == ("expired", "no seconds are left in which the attempt may begin")
    assert device.store.attempts() == []


@pytest.mark.clause("TSK-5")
@pytest.mark.case("U8")
def test_one_attempt_at_a_time(device: UpdatingDevice) -> None:
    device.begin()
    assert refusal(device.begin(OTHER)) == ("busy", f"attempt {UID} is open (step accepted); try again later")
    device.run()
    assert isinstance(device.begin(OTHER), Standing)


@pytest.mark.clause("TSK-5")
def test_of_two_that_begin_at_once_one_is_taken_on(device: UpdatingDevice) -> None:
    for round_ in range(20):
        uids = [f"00000000-0000-0000-0000-{round_:06d}{number:06d}" for number in range(4)]
        replies: list[AnyReply] = []
        gate = threading.Barrier(len(uids))

        def begin(uid: str, gate: threading.Barrier = gate, replies: list[AnyReply] = replies) -> None:
            gate.wait()
            replies.append(device.begin(uid))

        threads = [threading.Thread(target=begin, args=(uid,)) for uid in uids]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        taken = [reply.attempt for reply in replies if isinstance(reply, Standing)]
        assert len(taken) == 1
        device.agent = False
        device.begin(taken[0], seconds=0)
        device.run(lambda uid=taken[0]: not device.attempt(uid).is_open)  # type: ignore[misc]


@pytest.mark.clause("TSK-4")
def test_the_same_attempt_again_changes_nothing(device: UpdatingDevice) -> None:
    first = device.begin()
    assert device.begin() == first
    device.run()
    end = device.begin()
    assert isinstance(end, Standing)
    assert (end.state, end.last_number) == (AttemptState.COMPLETED, 15)
    assert len(device.attempt().records) == 15


@pytest.mark.clause("SYS-6")
def test_what_waits_for_root_refuses_every_new_attempt_and_says_why(device: UpdatingDevice) -> None:
    device.faults.exit_codes = {"upgrade": 100}
    device.begin()
    device.run()
    reason, message = refusal(device.begin(OTHER))
    assert reason == "repair-required"
    assert message == status(device).repair_required
    assert message == (
        f"attempt {UID} needs repair: apt-get full-upgrade ended with exit code 100: E: upgrade failed; run as root:"
        " fleet-updater repair. Found: dpkg was interrupted: libexample1 is half configured"
    )
    device.cut_power()
    assert refusal(device.begin(OTHER))[0] == "repair-required"


@pytest.mark.clause("SYS-3")
def test_a_journal_is_read_in_pages_from_any_number_on(device: UpdatingDevice) -> None:
    device.begin()
    device.run()
    page = device.updater.answer(GetJournal(attempt=UID, after=12))
    assert isinstance(page, JournalPage)
    assert [entry.number for entry in page.entries] == [13, 14, 15]
    assert page.standing.state is AttemptState.COMPLETED
    assert refusal(device.updater.answer(GetJournal(attempt=OTHER)))[0] == "unknown"


def refusal(reply: AnyReply) -> tuple[str, str]:
    assert isinstance(reply, Refusal)
    return reply.reason, reply.message


def status(device: UpdatingDevice) -> UpdaterStatus:
    reply = device.updater.answer(GetStatus())
    assert isinstance(reply, UpdaterStatus)
    return reply
