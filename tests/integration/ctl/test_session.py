"""Who fleetctl is, and where its server is."""

from __future__ import annotations

import stat
import subprocess
import sys

import pytest
from knox.models import AuthToken

from harness.control_plane import ROOT
from harness.ports import free_port
from tests.integration.ctl.cli import Fleetctl

pytestmark = pytest.mark.clause("API-2")


def test_the_program_starts_from_nothing() -> None:
    """The other tests run it with its imports done."""
    done = subprocess.run(
        [sys.executable, "-m", "fleet.ctl", "version"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout.startswith("fleetctl ")


def test_login_keeps_a_token_that_its_owner_alone_can_read(fleetctl: Fleetctl) -> None:
    assert stat.S_IMODE(fleetctl.config.stat().st_mode) == 0o600
    assert "correct horse" not in fleetctl.config.read_text()
    assert fleetctl("get", "devices").code == 0


def test_the_server_of_the_login_is_remembered(fleetctl: Fleetctl) -> None:
    assert fleetctl("get", "devices", FLEETCTL_SERVER="").code == 0


def test_logout_ends_the_token(fleetctl: Fleetctl) -> None:
    assert fleetctl("logout").code == 0
    assert not AuthToken.objects.exists()
    done = fleetctl("get", "devices")
    assert done.code == 4
    assert "fleetctl login" in done.stderr


def test_a_token_goes_to_no_other_server(fleetctl: Fleetctl) -> None:
    other = fleetctl.server.replace("localhost", "127.0.0.1")
    assert other != fleetctl.server
    assert fleetctl("--server", other, "get", "devices").code == 4


def test_a_token_may_come_from_the_environment(stranger: Fleetctl, django_user_model: type) -> None:
    user = django_user_model.objects.create_superuser("ada")  # type: ignore[attr-defined]
    _, token = AuthToken.objects.create(user)
    assert stranger("get", "devices", FLEETCTL_TOKEN=token).code == 0


def test_a_wrong_password_is_denied(fleetctl: Fleetctl) -> None:
    done = fleetctl("login", "--username", "ada", "--password-stdin", stdin="wrong\n")
    assert done.code == 4
    assert "Invalid username/password" in done.stderr


def test_without_a_terminal_the_password_is_asked_on_standard_input_only(stranger: Fleetctl) -> None:
    done = stranger("login", "--username", "ada")
    assert done.code == 2
    assert "--password-stdin" in done.stderr


def test_without_a_server_it_says_how_to_name_one(stranger: Fleetctl) -> None:
    done = stranger("get", "devices", FLEETCTL_SERVER="")
    assert done.code == 2
    assert "FLEETCTL_SERVER" in done.stderr


def test_a_server_that_does_not_answer_is_unreachable(stranger: Fleetctl) -> None:
    server = f"http://127.0.0.1:{free_port()}"
    done = stranger("get", "devices", FLEETCTL_SERVER=server)
    assert done.code == 6
    assert f"no answer from {server}: the connection failed" in done.stderr
    assert "Traceback" not in done.stderr


def test_something_that_is_no_fleet_is_recognised(stranger: Fleetctl) -> None:
    done = stranger("get", "devices", FLEETCTL_SERVER=f"{stranger.server}/admin")
    assert done.code == 2
    assert "is redirected to /admin/login/" in done.stderr


def test_a_broken_configuration_is_named(fleetctl: Fleetctl) -> None:
    fleetctl.config.write_text("server = ")
    done = fleetctl("get", "devices")
    assert done.code == 2
    assert str(fleetctl.config) in done.stderr


def test_help_explains_the_exit_codes(stranger: Fleetctl) -> None:
    text = " ".join(stranger("--help").stdout.split())
    assert "3: there is no such object" in text
    assert "6: no answer from the server, or the time was up" in text


def test_an_unknown_option_is_a_wrong_command_line(stranger: Fleetctl) -> None:
    assert stranger("get", "devices", "--colour").code == 2
    assert stranger("get", "planets").code == 2


def test_it_tells_its_version_and_completes_commands(stranger: Fleetctl) -> None:
    shown = stranger("--version")
    assert (shown.code, shown.stdout) == (0, stranger("version").stdout)
    assert shown.stdout.startswith("fleetctl ")
    assert "--install-completion" in stranger("--help").stdout
