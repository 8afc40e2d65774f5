"""``manage.py simulate`` as a person calls it, against a real web server."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import CommandError, call_command

from agent.wire.messages import EnrolRequest
from devices.models import Device, DeviceGroup, EnrolmentToken
from devices.services import device_enrol, token_create
from harness.control_plane import ControlPlane

pytestmark = pytest.mark.django_db(transaction=True)

Simulate = Callable[..., str]


@pytest.fixture
def simulate(control_plane: ControlPlane) -> Simulate:
    """Runs the command for a second against a web server; what it printed."""
    server = control_plane.web()

    def run(*options: str) -> str:
        out = io.StringIO()
        always = ["--devices", "3", "--url", server, "--seconds", "1", "--within", "0"]
        call_command("simulate", *always, *options, stdout=out)
        return out.getvalue()

    return run


def test_devices_report_are_counted_and_are_forgotten(simulate: Simulate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulation.management.commands.simulate.DRAIN_SECONDS", 0.0)  # no worker runs here
    printed = simulate("--reorder", "1", "--label", "role=analyzer")
    assert "3 devices, sim-00001 to sim-00003: 3 reordering reports" in printed
    assert re.search(r"^poll +3 ", printed, re.MULTILINE), printed
    assert "No request failed." in printed
    assert "Reports of 3 devices were not taken in (do workers run?): sim-00001: report " in printed
    assert printed.endswith("Forgotten: 3 simulated devices.\n")
    assert not Device.objects.exists()
    assert EnrolmentToken.objects.get().revoked_at is not None

    printed = simulate("--keep")
    assert printed.endswith("Kept: sim-00001 to sim-00003; they are offline from now on.\n")
    assert Device.objects.filter(operator_labels__simulated="true").count() == 3
    assert DeviceGroup.objects.get(name="simulated").devices.count() == 3
    assert "Forgotten: 3 simulated devices." in simulate(), "what an earlier run left is taken over"


def test_a_name_that_a_real_device_has_is_left_alone(simulate: Simulate) -> None:
    until = datetime.now(UTC) + timedelta(hours=1)
    _token, plain = token_create(name="real", expires_at=until, use_limit=1, labels={}, groups=[], actor=None)
    device_enrol(request=EnrolRequest(device="sim-00002", token=plain))
    with pytest.raises(CommandError, match=r"device 'sim-00002' exists and is not simulated .* --prefix"):
        simulate()
    assert [device.name for device in Device.objects.all()] == ["sim-00002"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--lying", "2"], "--lying: found '2'; allowed: a number from 0 to 1"),
        (["--poll", "0"], "--poll: found '0'; allowed: a number from 0.2 to 86400"),
        (["--prefix", "Sim_"], "--prefix: found 'Sim_'; allowed: lower-case letters, digits and -"),
        (["--label", "role"], "--label: found 'role'; allowed: KEY=VALUE"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(options: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=re.escape(said)):
        call_command("simulate", "--devices", "3", *options)


def test_a_control_plane_that_is_not_there_is_said_and_nothing_is_left() -> None:
    with pytest.raises(CommandError, match=re.escape("http://127.0.0.1:1 cannot be reached: Connection refused")):
        call_command("simulate", "--devices", "3", "--url", "http://127.0.0.1:1", stdout=io.StringIO())
    assert not Device.objects.exists()
    assert EnrolmentToken.objects.get().revoked_at is not None
