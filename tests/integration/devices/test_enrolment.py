"""How a device gets in, and how nobody gets in under its name."""

from __future__ import annotations

import pytest

from devices.models import Credential, Device, EnrolmentToken
from devices.services import device_forget, device_reset_credential, token_create, token_revoke
from fleet.core.errors import Conflict, Invalid
from fleet.core.models import AuditEntry
from tests.integration.devices.door import Door
from tests.integration.rollouts.together import together

pytestmark = pytest.mark.database


@pytest.mark.clause("DEV-1")
def test_a_token_is_exchanged_for_a_credential_of_the_devices_own(door: Door) -> None:
    token = door.token(groups=("lab",), role="analyzer")
    reply = door.enrol("edge-1", token)
    assert reply.status_code == 201
    credential = reply.json()["credential"]
    device = door.device("edge-1")
    assert reply.json()["uid"] == str(device.uid)
    assert device.labels == {"role": "analyzer", "device-id": "edge-1"}
    assert [group.name for group in device.groups.all()] == ["lab"]
    assert door.get("/desired", credential).status_code == 200
    stored = Credential.objects.get(device=device).token_hash
    assert credential not in stored
    assert token not in EnrolmentToken.objects.get().token_hash
    assert AuditEntry.objects.filter(action="enrol", object_name="edge-1").exists()


@pytest.mark.clause("DEV-1")
@pytest.mark.parametrize("name", ["Edge-1", "edge_1", "-edge", "edge-", "a" * 64, "", "edge\n", "edge.1", "ed ge"])
def test_a_device_id_that_is_no_label_is_refused_and_uses_up_nothing(door: Door, name: str) -> None:
    reply = door.enrol(name, door.token())
    assert reply.status_code == 422
    assert f"device id {name!r} is not allowed; allowed: 1 to 63 lower-case letters" in reply.json()["detail"]
    assert not Device.objects.exists()
    assert EnrolmentToken.objects.get().uses == 0


@pytest.mark.clause("DEV-1")
@pytest.mark.case("E1")
def test_an_expired_a_used_up_and_a_revoked_token_let_nobody_in_and_say_why(door: Door) -> None:
    once = door.token("once", uses=1)
    assert door.enrol("edge-1", once).status_code == 201
    used_up = door.enrol("edge-2", once)
    assert used_up.status_code == 403
    assert "'once' has been used 1 times; its limit is 1" in used_up.json()["detail"]

    revoked = door.token("revoked")
    token_revoke(token=EnrolmentToken.objects.get(name="revoked"), actor=None)
    assert "was revoked" in door.enrol("edge-2", revoked).json()["detail"]

    late = door.token("late")
    door.later(days=1)
    assert "'late' expired at 2026-12-02 14:00 UTC" in door.enrol("edge-2", late).json()["detail"]
    assert list(Device.objects.values_list("name", flat=True)) == ["edge-1"]


def test_an_unknown_token_is_refused(door: Door) -> None:
    reply = door.enrol("edge-1", "enrol_guess")
    assert reply.status_code == 401
    assert "unknown" in reply.json()["detail"]


@pytest.mark.case("E1")
def test_a_token_without_an_end_cannot_be_made(door: Door) -> None:
    with pytest.raises(Invalid, match=r"expiresAt: .* is past"):
        token_create(name="x", expires_at=door.now, use_limit=1, labels={}, groups=[], actor=None)
    with pytest.raises(Invalid, match="useLimit: found 0; allowed: 1 to"):
        token_create(name="x", expires_at=door.now.replace(year=2027), use_limit=0, labels={}, groups=[], actor=None)
    with pytest.raises(Invalid, match=r"labels\.canary: it is set by the control plane only"):
        token_create(
            name="x",
            expires_at=door.now.replace(year=2027),
            use_limit=1,
            labels={"canary": "true"},
            groups=[],
            actor=None,
        )
    door.token("taken")
    with pytest.raises(Conflict, match="'taken' already"):
        door.token("taken")
    assert EnrolmentToken.objects.count() == 1


@pytest.mark.clause("DEV-2")
@pytest.mark.case("E2")
def test_no_second_device_takes_over_a_name(door: Door) -> None:
    old = door.enrolled("edge-1")
    reply = door.enrol("edge-1", door.token())
    assert reply.status_code == 409
    assert "let an operator reset it (fleetctl device reset edge-1)" in reply.json()["detail"]
    assert door.enrol("edge-1", door.token("other"), credential="device_guess").status_code == 409
    assert door.get("/desired", old).status_code == 200
    assert Device.objects.count() == 1


@pytest.mark.clause("DEV-2")
@pytest.mark.case("E2")
def test_the_same_device_returns_with_its_old_credential_and_stays_the_same_one(door: Door) -> None:
    old = door.enrolled("edge-1")
    uid = door.device("edge-1").uid
    reply = door.enrol("edge-1", door.token(), credential=old)
    assert reply.status_code == 201
    assert door.device("edge-1").uid == uid
    assert door.get("/desired", old).status_code == 401
    assert door.get("/desired", reply.json()["credential"]).status_code == 200


@pytest.mark.clause("DEV-2")
@pytest.mark.case("E3")
def test_an_operators_reset_lets_one_enrolment_in_within_a_day(door: Door) -> None:
    old = door.enrolled("edge-1")
    device_reset_credential(device=door.device("edge-1"), actor=None)
    unauthorised = door.get("/desired", old)
    assert unauthorised.status_code == 401
    assert "enrol again with a token from an operator" in unauthorised.json()["detail"]
    assert door.enrol("edge-1", door.token("first")).status_code == 201
    assert door.enrol("edge-1", door.token("second")).status_code == 409


@pytest.mark.clause("DEV-2")
def test_a_reset_that_nobody_used_runs_out(door: Door) -> None:
    door.enrolled("edge-1")
    device_reset_credential(device=door.device("edge-1"), actor=None)
    door.later(hours=25)
    assert door.enrol("edge-1", door.token()).status_code == 409


@pytest.mark.clause("DEV-2")
def test_a_deleted_device_is_out_at_once_and_returns_only_as_another_one(door: Door) -> None:
    credential = door.enrolled("edge-1")
    uid = door.device("edge-1").uid
    device_forget(device=door.device("edge-1"), actor=None)
    assert door.get("/desired", credential).status_code == 401
    assert door.report(credential, 1).status_code == 401
    assert not Device.objects.exists()
    door.enrol("edge-1", door.token())
    assert door.device("edge-1").uid != uid


@pytest.mark.case("E4")
@pytest.mark.django_db(transaction=True)
def test_of_many_who_enrol_under_one_name_at_once_one_gets_in(door: Door) -> None:
    token = door.token(uses=50)
    answers: list[int] = []
    failures = together(*[lambda: answers.append(Door().enrol("edge-1", token).status_code)] * 8)
    assert failures == []
    assert sorted(answers) == [201] + [409] * 7
    assert EnrolmentToken.objects.get().uses == 1


@pytest.mark.case("E4")
@pytest.mark.django_db(transaction=True)
def test_the_last_use_of_a_token_is_given_once(door: Door) -> None:
    token = door.token(uses=1)
    answers: list[int] = []
    failures = together(
        *[lambda name=f"edge-{number}": answers.append(Door().enrol(name, token).status_code) for number in range(8)]
    )
    assert failures == []
    assert sorted(answers) == [201] + [403] * 7
    assert Device.objects.count() == 1
