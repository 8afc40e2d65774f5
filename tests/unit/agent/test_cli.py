"""The commands as people type them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from agent.cli import main
from agent.store import Store
from agent.version import VERSION
from tests.support.fake_control import FakeControlPlane, score, service

CONFIG = """\
[server]
url = "{url}"
[device]
id = "edge-1"
[agent]
state_dir = "{folder}/state"
settle_seconds = 0
pull_jitter_seconds = 0
[runtime]
kind = "simulated"
[runtime.simulated]
fail_init = ["broken*"]
"""


@pytest.fixture
def config(tmp_path: Path, control: FakeControlPlane) -> str:
    path = tmp_path / "agent.toml"
    path.write_text(CONFIG.format(url=control.url, folder=tmp_path))
    return str(path)


@pytest.fixture
def enrolled(config: str, tmp_path: Path, control: FakeControlPlane, capsys: pytest.CaptureFixture[str]) -> str:
    (tmp_path / "token").write_text(f"{control.token}\n")
    assert main(["--config", config, "enroll", "--token-file", str(tmp_path / "token")]) == 0
    assert capsys.readouterr().out.startswith(f"edge-1 is enrolled (uid {control.uid}) with http://127.0.0.1")
    return config


@pytest.mark.clause("AGT-13")
def test_version(capsys: pytest.CaptureFixture[str]):
    assert main(["version"]) == 0
    assert capsys.readouterr().out == f"{VERSION}\n"


def test_the_version_is_the_package_s():
    import tomllib  # noqa: PLC0415

    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert project["project"]["version"] == VERSION


@pytest.mark.clause("AGT-13", "DEV-1")
def test_enroll_takes_the_token_from_standard_input(
    config: str, tmp_path: Path, control: FakeControlPlane, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.stdin", io.StringIO(control.token))
    assert main(["--config", config, "enroll", "--token-file", "-"]) == 0
    assert Store(tmp_path / "state").credential() == control.credential


@pytest.mark.parametrize("command", [["run"], ["once"], ["status"]])
def test_what_needs_an_enrolment_says_so(config: str, command: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(["--config", config, *command]) == 1
    assert "edge-1 is not enrolled yet; run: fleet-agent enroll --token-file FILE" in capsys.readouterr().err


def test_a_refused_token_is_said_in_the_server_s_words(config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "token").write_text("wrong")
    assert main(["--config", config, "enroll", "--token-file", str(tmp_path / "token")]) == 1
    said = capsys.readouterr().err
    assert said == "fleet-agent: the control plane answered 403: the enrolment token is expired or used up\n"
    assert "wrong" not in said


@pytest.mark.clause("AGT-13")
def test_once_works_and_shows_what_came_of_it(
    enrolled: str, control: FakeControlPlane, capsys: pytest.CaptureFixture[str]
):
    control.want("u1", score(service("api", "r.example/api:1")))
    control.notices = ['the label "canary" is set by operators only and was ignored']
    assert main(["--config", enrolled, "once"]) == 0
    said = capsys.readouterr().out
    assert "default/analysis-api revision 1: converged since" in said
    assert 'Notice          the label "canary" is set by operators only and was ignored' in said

    broken = score(service("api", "r.example/api:1"), init=service("broken", "r.example/broken:1"))
    control.want("u1", broken, revision=2)
    assert main(["--config", enrolled, "once"]) == 1
    said = capsys.readouterr().out
    assert "revision 2: failed since" in said
    assert "init container broken failed with exit code 1: simulated failure of broken" in said


@pytest.mark.clause("AGT-13")
def test_status_shows_what_the_agent_wrote(enrolled: str, capsys: pytest.CaptureFixture[str]):
    assert main(["--config", enrolled, "status"]) == 1
    assert "is enrolled, but no agent has run yet; run: fleet-agent run" in capsys.readouterr().err
    assert main(["--config", enrolled, "once"]) == 0
    capsys.readouterr()
    assert main(["--config", enrolled, "status"]) == 0
    said = capsys.readouterr().out
    assert f"Agent           {VERSION}, not running" in said
    assert "Desired state   version 0, epoch 1" in said
    assert main(["--config", enrolled, "status", "--json"]) == 0
    assert '"device": "edge-1"' in capsys.readouterr().out


@pytest.mark.case("E3")
@pytest.mark.clause("AGT-16")
def test_once_answers_who_asked_for_logs(enrolled: str, control: FakeControlPlane):
    control.want("u1", score(service("api", "r.example/api:1"), service("web", "r.example/web:1")))
    main(["--config", enrolled, "once"])
    control.want_log("r1", "u1", "api")
    control.want_log("r2", "u1", "web")
    assert main(["--config", enrolled, "once"]) == 0
    assert [reply.text for reply in control.logs] == ["simulated start of api", "simulated start of web"]


def test_once_without_a_control_plane_works_on_what_it_knows_and_says_so(
    enrolled: str, control: FakeControlPlane, capsys: pytest.CaptureFixture[str]
):
    control.want("u1", score(service("api", "r.example/api:1")))
    main(["--config", enrolled, "once"])
    control.credential = "another"
    capsys.readouterr()
    assert main(["--config", enrolled, "once"]) == 1
    said = capsys.readouterr().out
    assert "Contact error   the control plane answered 401" in said
    assert "default/analysis-api revision 1: converged since" in said


@pytest.mark.clause("AGT-13")
def test_a_wrong_configuration_ends_with_2_and_names_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "agent.toml").write_text("[server]\nurl = 'http://a'\n[device]\nname = 'x'\n")
    assert main(["--config", str(tmp_path / "agent.toml"), "status"]) == 2
    assert capsys.readouterr().err.endswith("agent.toml: line 4: device.name: unknown key; allowed: id, labels\n")


def test_an_identity_of_another_device_is_refused(enrolled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = Path(enrolled)
    path.write_text(path.read_text().replace('id = "edge-1"', 'id = "edge-2"'))
    assert main(["--config", enrolled, "once"]) == 1
    assert "enrolled as 'edge-1', but device.id says 'edge-2'" in capsys.readouterr().err


def test_two_agents_do_not_share_a_device(enrolled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with Store(tmp_path / "state").lock():
        assert main(["--config", enrolled, "once"]) == 1
    assert "another fleet-agent works with" in capsys.readouterr().err
