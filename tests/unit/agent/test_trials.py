"""``fleet-agent self-test`` and ``probe``: what a release shows before it may become the agent (UPG-3, AGT-13)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent import trials
from agent.cli import main
from agent.control import ControlError, ControlPlane, Unreachable
from agent.store import FORMAT, Identity, Store
from agent.version import SOURCE, VERSION, own
from tests.support.devices import ManualClock
from tests.support.fake_control import FakeControlPlane

pytestmark = pytest.mark.clause("UPG-3", "AGT-13")
CONFIG = """\
[server]
url = "{url}"
[device]
id = "edge-1"
[agent]
state_dir = "{folder}/state"
"""


@pytest.fixture
def control() -> Iterator[FakeControlPlane]:
    with FakeControlPlane() as control:
        yield control


@pytest.fixture
def config(tmp_path: Path, control: FakeControlPlane) -> Path:
    """The configuration of an enrolled device."""
    path = tmp_path / "agent.toml"
    path.write_text(CONFIG.format(url=control.url, folder=tmp_path))
    Store(tmp_path / "state").save_identity(Identity("edge-1", control.uid, control.url), control.credential)
    return path


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@pytest.mark.parametrize("command", ["self-test", "probe"])
def test_a_release_that_fits_passes_and_changes_nothing(
    command: str, config: Path, tmp_path: Path, control: FakeControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(tmp_path)
    assert main(["--config", str(config), command]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"fleet-agent {VERSION} {command} passed"
    assert contents(tmp_path) == before
    assert control.calls == ([] if command == "self-test" else [("/api/agent/v1/desired", 200)])
    assert control.reports == []


@pytest.mark.clause("UPG-8")
def test_a_state_of_a_newer_format_is_named(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "state" / "identity.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": FORMAT + 1}))
    assert main(["--config", str(config), "self-test"]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f"fleet-agent: {path} has format {FORMAT + 1}, this agent reads up to {FORMAT}"


@pytest.mark.clause("UPG-8")
def test_a_secret_cache_of_a_newer_format_is_named_and_left_alone(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path / "state")
    store.save_secret_box(b"ciphertext")
    path = tmp_path / "state" / "secrets.cache"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": FORMAT + 1}))
    before = contents(tmp_path)
    assert main(["--config", str(config), "self-test"]) == 1
    assert f"{path} has format {FORMAT + 1}" in capsys.readouterr().err
    assert contents(tmp_path) == before


def test_a_configuration_that_this_version_cannot_read_is_named(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(config.read_text().replace("[agent]", "[agent]\nbeyond = 1"))
    assert main(["--config", str(config), "self-test"]) == 2
    assert "beyond" in capsys.readouterr().err


def test_a_library_that_does_not_load_is_named(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trials, "_LATER", ("agent.no_such_module",))
    assert main(["--config", str(config), "self-test"]) == 1
    assert "agent.no_such_module cannot be loaded" in capsys.readouterr().err


def test_a_refused_credential_fails_the_probe_at_once(
    config: Path, control: FakeControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    control.credential = "another"
    assert main(["--config", str(config), "probe"]) == 1
    assert "401" in capsys.readouterr().err
    assert len(control.calls) == 1


class _Time(ManualClock):
    """Sleeping moves it."""

    def sleep(self, seconds: float) -> None:
        self.forward(seconds)


def test_a_control_plane_that_is_away_is_called_again_until_the_time_is_over(control: FakeControlPlane) -> None:
    control.refuse_with = 503
    clock = _Time()
    began = clock.monotonic()
    plane = ControlPlane(control.url, credential=lambda: control.credential)
    with pytest.raises(ControlError, match="503"):
        trials.probe(plane, trials.Patience(60, clock, clock.sleep))
    assert 20 < clock.monotonic() - began < 60
    assert len(control.calls) > 4

    def comes_back(seconds: float) -> None:
        clock.forward(seconds)
        control.refuse_with = 0

    trials.probe(plane, trials.Patience(60, clock, comes_back))


def test_without_any_time_it_is_called_once() -> None:
    clock = _Time()
    with pytest.raises(Unreachable):
        trials.probe(ControlPlane("http://127.0.0.1:9"), trials.Patience(0, clock, clock.sleep))


def test_a_release_has_the_version_that_its_description_says(tmp_path: Path) -> None:
    (tmp_path / "release.json").write_text('{"version": "7.0.0"}')
    assert own(tmp_path) == "7.0.0"
    for odd in ("", "[]", '{"version": 7}', '{"version": ""}'):
        (tmp_path / "release.json").write_text(odd)
        assert own(tmp_path) == SOURCE
    assert own(None) == SOURCE
