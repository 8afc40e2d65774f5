"""What fleetctl prints is safe for a terminal and easy for a program."""

from __future__ import annotations

import pytest
import yaml

from fleet.ctl.client import Client, segment
from fleet.ctl.commands.devices import seconds
from fleet.ctl.config import Config
from fleet.ctl.errors import EXPLAINED, Exit, Refused
from fleet.ctl.output import Format, moment, plain, show, table
from fleet.ctl.session import deployment_path, full_name
from fleet.ctl.watching import Seen, changes

pytestmark = pytest.mark.clause("API-2")


def seen(
    phase: str = "Canary", message: str = "", converged: int = 0, rows: list[dict[str, object]] | None = None
) -> Seen:
    counts = {"matched": 2, "released": 1, "converged": converged, "failed": 0, "offline": 0}
    return Seen(1, {"phase": phase, "message": message, "counts": counts}, rows or [])


def row(message: str) -> dict[str, object]:
    return {"device": "edge-1", "canary": False, "state": "released", "connectivity": "online", "message": message}


def test_columns_are_aligned_and_nothing_is_cut() -> None:
    assert table(("NAME", "WHY"), [("a" * 30, "x\ny  z"), ("b", None)]) == [
        f"{'NAME':30}   WHY",
        f"{'a' * 30}   x y z",
        f"{'b':30}   -",
    ]


@pytest.mark.parametrize("evil", ["\x1b[2J", "\x9b2J", "\x07", "\r", "\x00"])
def test_nothing_that_steers_a_terminal_is_printed(evil: str) -> None:
    assert evil[0] not in plain(f"a{evil}b")


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_what_programs_read_says_the_same_and_steers_no_terminal(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = {"message": "\x1b[2J\x9b2J\x7f\x07 größer"}
    show([said], Format(form), heads=(), row=lambda _: (), name=str, alone=True)
    shown = capsys.readouterr().out
    assert yaml.safe_load(shown) == said
    assert not set(shown) & {"\x1b", "\x9b", "\x7f", "\x07"}
    assert "größer" in shown


@pytest.mark.parametrize(("text", "value"), [("30s", 30), ("5m", 300), ("12h", 43200), ("7d", 604800)])
def test_durations(text: str, value: int) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "5", "h", "-1h", "1.5h", "1 h", "٣h", "1w"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(Refused, match="allowed: a number and s, m, h or d"):
        seconds(text)


def test_moments_are_in_utc() -> None:
    assert moment("2026-12-01T15:02:03.5+01:00") == "2026-12-01 14:02:03 UTC"
    assert moment(None) == "-"


def test_names_become_parts_of_a_path() -> None:
    assert deployment_path("api", "default") == "namespaces/default/deployments/api/"
    assert deployment_path("shop/web", "default") == "namespaces/shop/deployments/web/"
    assert full_name("shop/web", "default") == "shop/web"
    assert segment("a/../b?c#d") == "a%2F..%2Fb%3Fc%23d"


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_way_up_is_no_name(name: str) -> None:
    with pytest.raises(Refused):
        segment(name)


@pytest.mark.parametrize("server", ["", "fleet.example.com", "ftp://fleet.example.com"])
def test_a_server_needs_a_scheme(server: str) -> None:
    with pytest.raises(Refused, match="FLEETCTL_SERVER") as refused:
        Client(Config(server))
    assert refused.value.code == Exit.USAGE


def test_every_exit_code_is_explained() -> None:
    assert set(EXPLAINED) == set(Exit)


def test_a_line_for_each_change_and_none_without() -> None:
    first = seen(message="Waiting for edge-1: a", rows=[row("a")])
    assert changes(Seen(), first) == [
        "generation 1: Canary, 0 of 2 converged, 1 released. Waiting for edge-1: a",
        "  edge-1 released, online: a",
    ]
    assert changes(first, first) == []
    assert changes(first, seen(message="Waiting for edge-1: b", rows=[row("b")])) == ["  edge-1 released, online: b"]
    alone = seen(message="Waiting for edge-1: c", rows=[row("a")])
    assert changes(first, alone) == ["generation 1: Canary, 0 of 2 converged, 1 released. Waiting for edge-1: c"]


def test_trouble_is_told_once() -> None:
    assert changes(Seen(), Seen(trouble="away")) == ["away"]
    assert changes(Seen(trouble="away"), Seen(trouble="away")) == []
