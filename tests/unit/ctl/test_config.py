"""Which server and which token fleetctl uses."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from fleet.ctl import config
from fleet.ctl.config import Config
from fleet.ctl.errors import Exit, Refused

pytestmark = pytest.mark.clause("API-2")
HERE = Config("https://fleet.example.com", 'to"k\\en', "/etc/ca.pem")


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("FLEETCTL_SERVER", "FLEETCTL_TOKEN", "FLEETCTL_CA_FILE"):
        monkeypatch.delenv(name, raising=False)


def test_nothing_is_known_at_first() -> None:
    assert config.load() == Config()


def test_what_is_saved_is_loaded() -> None:
    config.save(HERE)
    assert config.load() == HERE


def test_the_file_is_its_owners_alone_also_when_it_was_not() -> None:
    config.save(HERE).chmod(0o644)
    file = config.save(HERE)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in file.parent.iterdir()] == ["config.toml"]


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    config.save(HERE)
    monkeypatch.setenv("FLEETCTL_SERVER", "https://env.example.com/")
    assert config.load().server == "https://env.example.com"
    assert config.load(server="https://line.example.com").server == "https://line.example.com"


def test_a_stored_token_is_for_the_stored_server_alone() -> None:
    config.save(HERE)
    assert config.load(server="https://other.example.com") == Config("https://other.example.com")


def test_a_token_of_the_environment_goes_where_one_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEETCTL_TOKEN", "mine")
    assert config.load(server="https://other.example.com").token == "mine"


def test_a_file_that_is_none_is_named() -> None:
    file = config.save(HERE)
    file.write_text("server = ")
    with pytest.raises(Refused, match=str(file)) as refused:
        config.load()
    assert refused.value.code == Exit.USAGE


def test_values_that_are_no_text_are_not_used() -> None:
    config.save(HERE).write_text("server = 5\ntoken = 'a'")
    assert config.load() == Config("", "a")
