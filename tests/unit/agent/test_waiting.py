"""Word from the control plane: what an agent does with it, without it, and when it is wrong. The clock stands still."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from agent.config import ConfigError, parse
from agent.waiting import GAP_SECONDS, NOT_SERVED_SECONDS, RARE_POLL_SECONDS
from tests.support.devices import Edge
from tests.support.fake_control import FakeControlPlane, score
from tests.unit.agent.kit import API


@pytest.fixture
def told(control: FakeControlPlane, edge: Edge) -> Edge:
    """A device that has polled once and waited once, so that it knows that word comes."""
    control.serves_waiting = True
    edge.engine.network()
    edge.engine.waiting()
    return edge


def calls(edge: Edge, seconds: float, *, step: float = 1.0) -> Counter[str]:
    """What the device asks within this time, by the last part of the path."""
    edge.control.calls.clear()
    for _ in range(int(seconds / step)):
        edge.engine.waiting()
        edge.engine.network()
        edge.clock.forward(step)
    return Counter(path.rpartition("/")[2].partition("?")[0] for path, _ in edge.control.calls)


def test_word_leads_to_a_poll_within_the_spread(told: Edge, control: FakeControlPlane) -> None:
    told.clock.forward(GAP_SECONDS + 1)
    control.want("u1", score(API))
    told.engine.waiting()
    assert 0 < told.engine.network() <= told.config.server.wait_spread_seconds
    told.clock.forward(1)
    told.engine.network()
    assert told.agent.desired.etag == control.etag


def test_polls_are_rare_while_word_comes_and_heartbeats_are_not(told: Edge) -> None:
    calls(told, 20)  # the poll that was due before
    asked = calls(told, 2 * RARE_POLL_SECONDS)
    assert asked["desired"] <= 3
    assert asked["report"] >= 2 * RARE_POLL_SECONDS / told.config.agent.heartbeat_seconds - 1


def test_where_nobody_serves_waiting_polls_go_on_and_it_is_tried_again_after_minutes(edge: Edge) -> None:
    edge.engine.network()
    asked = calls(edge, NOT_SERVED_SECONDS)
    assert asked["wait"] == 1
    assert asked["desired"] > NOT_SERVED_SECONDS / edge.config.agent.poll_seconds * 0.8
    edge.control.serves_waiting = True
    assert calls(edge, NOT_SERVED_SECONDS)["wait"] > 1


def test_a_waiting_process_that_dies_lets_the_device_poll_as_before_and_come_again(
    told: Edge, control: FakeControlPlane
) -> None:
    calls(told, 30)
    control.serves_waiting = False
    told.clock.forward(GAP_SECONDS * 2)
    asked = calls(told, 60)
    assert asked["desired"] >= 5
    control.serves_waiting = True
    calls(told, 2 * NOT_SERVED_SECONDS)
    assert calls(told, RARE_POLL_SECONDS)["desired"] <= 2


def test_waiting_for_something_else_than_what_polls_show_is_given_up(told: Edge, control: FakeControlPlane) -> None:
    """As when a backup was restored and ``new_epoch`` forgotten: the state is older, so the device ignores it."""
    control.want("u1", score(API))
    calls(told, 30)
    control.version = 0
    asked = calls(told, 300)
    assert asked["wait"] < 10
    assert asked["desired"] < 40


def test_word_does_not_break_a_back_off(told: Edge, control: FakeControlPlane) -> None:
    calls(told, 10)
    control.want("u1", score(API))
    told.engine.waiting()
    control.refuse_with, control.retry_after = 503, "120"
    told.clock.forward(1)
    told.engine.network()
    assert calls(told, 100)["desired"] == 0
    control.refuse_with, control.retry_after = 0, ""
    calls(told, 60)
    assert told.agent.desired.etag == control.etag


def test_word_is_heeded_while_reports_get_lost(told: Edge, control: FakeControlPlane) -> None:
    calls(told, 20)
    control.lose_replies = True
    told.clock.forward(60)
    calls(told, 10)
    control.want("u1", score(API))
    assert calls(told, 10)["desired"] == 1
    assert told.agent.desired.etag == control.etag


def test_a_wait_that_always_ends_at_once_is_not_repeated_at_once(told: Edge) -> None:
    """As when two machines claim to be the same device, and end each other's wait."""
    assert calls(told, 60, step=0.5)["wait"] <= 60 / GAP_SECONDS + 1


def test_a_device_that_was_never_given_a_state_does_not_wait(edge: Edge, control: FakeControlPlane) -> None:
    control.serves_waiting = True
    edge.engine.waiting()
    assert [path for path, _ in control.calls] == ["/api/agent/v1/enroll"]


def test_a_new_credential_is_used_for_waiting_too(told: Edge, control: FakeControlPlane) -> None:
    calls(told, 30)
    control.credential = "another"
    calls(told, 60)
    (told.config.state_dir / "credential").write_text("another")
    assert calls(told, 30)["wait"] > 1


@pytest.mark.parametrize("key", ["wait_url", "wait_spread_seconds"])
def test_a_wrong_key_is_named(key: str, tmp_path: Path) -> None:
    text = f'[server]\nurl = "https://fleet.example.com"\n{key} = "ftp:"\n[device]\nid = "edge-1"\n'
    with pytest.raises(ConfigError, match=f"line 3: server.{key}"):
        parse(text)
