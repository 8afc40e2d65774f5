"""The small pieces of HTML."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from fleet.core import clock
from fleet.core.adminkit import charts, manifests, show

NOW = datetime(2026, 12, 1, 14, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _clock() -> Iterator[None]:
    with clock.reading(lambda: NOW):
        yield


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "now"),
        (-4, "now"),
        (5, "5 s ago"),
        (59, "59 s ago"),
        (60, "1 min ago"),
        (7200, "2 h ago"),
        (200_000, "2 d ago"),
    ],
)
def test_a_past_time_is_told_as_people_do(seconds: int, text: str) -> None:
    assert show.relative(NOW - timedelta(seconds=seconds)) == text


def test_a_time_ahead_is_told_too() -> None:
    assert show.relative(NOW + timedelta(days=7)) == "in 7 d"


def test_what_comes_from_devices_and_people_is_escaped() -> None:
    nasty = "<script>alert(1)</script>"
    made = [
        show.badge(nasty, show.Look("good", nasty), title=nasty),
        show.chips({nasty: nasty}),
        show.names([nasty]),
        show.bar([(1, "good", nasty)], total=1),
        charts.donut([charts.Slice(1, "good", nasty)], nasty),
        charts.columns([charts.Column([(1, "good")], nasty, nasty)], nasty),
    ]
    assert not [html for html in made if "<script" in html]


def test_a_badge_says_its_state_in_words_not_only_in_colour() -> None:
    assert "offline" in show.badge("offline", show.Look("bad", "wifi_off"))


def test_more_labels_than_fit_are_counted_and_named() -> None:
    html = show.chips({"a": "1", "b": "2", "c": ""}, limit=1)
    assert "a=1" in html
    assert 'title="b=2, c"' in html
    assert "+2 more" in html


def test_the_parts_of_a_bar_fill_it_and_are_described() -> None:
    html = show.bar([(3, "good", "converged"), (1, "bad", "failed"), (0, "mute", "held")], total=4)
    assert 'aria-label="3 converged, 1 failed"' in html
    assert 'width="75.000"' in html
    assert 'x="75.000" y="0" width="25.000"' in html


def test_a_bar_of_nothing_is_empty() -> None:
    assert "nothing yet" in show.bar([(0, "good", "converged")], total=0)


def test_charts_of_nothing_can_be_drawn() -> None:
    assert "no devices" in charts.donut([charts.Slice(0, "good", "online")], "devices")
    assert charts.columns([], "no events")


YAML = """\
kind: Deployment
spec:
  targetSelector: {}
  score:
    data:
      services:
        - name: a
          ports:
            - one
            - two
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("kind", 1),
        ("spec.targetSelector", 3),
        ("spec.score.data.services[0].ports[1]", 10),
        ("spec.score.data.services[0].image", 7),  # missing: where it should be
        ("spec.score.data.services[9]", 6),
        ("nonsense", 1),
    ],
)
def test_a_fault_is_found_in_the_text(path: str, line: int) -> None:
    assert manifests.line_of(YAML, path) == line


def test_a_fault_of_the_second_document_is_found_there() -> None:
    assert manifests.line_of(f"a: 1\n---\n{YAML}", "spec.targetSelector", 1) == 5


@pytest.mark.parametrize("text", ["}{", "[" * 5000, "x" * 100_000])
def test_text_that_cannot_be_read_has_no_lines(text: str) -> None:
    assert manifests.line_of(text, "spec") is None


def test_the_difference_of_two_manifests_is_told_by_lines() -> None:
    lines = manifests.difference("a: 1\nb: 2\n", "a: 1\nb: 3\n")
    assert ("remove", "-b: 2") in lines
    assert ("add", "+b: 3") in lines
    assert manifests.difference("a: 1", "a: 1") == []


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (200, "3 min 20 s"), (5400, "1 h 30 min"), (90000, "1 d 1 h")],
)
def test_how_long_something_took_is_said_in_two_units(seconds: int, words: str) -> None:
    assert show.took(timedelta(seconds=seconds)) == words
