"""Polls, documents and reports over HTTP."""

from __future__ import annotations

import hashlib

import pytest
from django.db import connection
from pytest_django import DjangoAssertNumQueries, Settings

from agent.wire.messages import MAX_REPORT_BYTES, Message
from devices import agent_api
from devices.models import ReportInbox
from devices.services import mailbox
from devices.services.upkeep import epoch_begin
from tests.integration.devices.door import Door

pytestmark = pytest.mark.database


class Note(Message):
    """A document of no particular kind."""

    text: str


def told(door: Door, name: str, text: str = "hello", key: str = "1") -> str:
    """Put a document into a device's desired state; its hash."""
    document = mailbox.document_put(Note(text=text))
    mailbox.desired_put(kind="note", key=key, document=document, device_ids=[door.device(name).pk])
    return document.hash


@pytest.mark.clause("DEV-3")
@pytest.mark.parametrize(
    ("method", "path"), [("get", "/desired"), ("get", f"/documents/{'0' * 64}"), ("post", "/report")]
)
def test_nothing_is_told_without_a_credential(door: Door, method: str, path: str) -> None:
    for credential in ("", "device_guess", "é" * 10):
        reply = door.get(path, credential) if method == "get" else door.post(path, {}, credential)
        assert reply.status_code == 401
        assert reply["WWW-Authenticate"].startswith("Bearer")
        assert reply["Content-Type"] == "application/problem+json"
        assert "enrol" in reply.json()["detail"]


@pytest.mark.clause("AGT-9")
def test_a_poll_is_304_until_something_changes(door: Door) -> None:
    credential = door.enrolled("edge-1")
    first = door.get("/desired", credential)
    assert first.json()["device"] == "edge-1"
    assert "items" not in first.json()
    assert door.get("/desired", credential, **{"If-None-Match": first["ETag"]}).status_code == 304

    weakened = f"W/{first['ETag']}"  # as a proxy that compresses does
    assert door.get("/desired", credential, **{"If-None-Match": weakened}).status_code == 304

    hash_ = told(door, "edge-1")
    second = door.get("/desired", credential, **{"If-None-Match": first["ETag"]})
    assert second.status_code == 200
    assert second.json()["version"] > first.json()["version"]
    (item,) = second.json()["items"]
    assert (item["kind"], item["key"], item["hash"]) == ("note", "1", hash_)
    assert item["version"] == second.json()["version"]


@pytest.mark.clause("AGT-9")
def test_a_new_epoch_reaches_every_device(door: Door) -> None:
    credential = door.enrolled("edge-1")
    before = door.get("/desired", credential)
    assert epoch_begin() == 2
    after = door.get("/desired", credential, **{"If-None-Match": before["ETag"]})
    assert after.status_code == 200
    assert after.json()["epoch"] == 2


def test_an_idle_poll_costs_one_query(door: Door, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    credential = door.enrolled("edge-1")
    for key in range(20):
        told(door, "edge-1", key=str(key))
    etag = door.get("/desired", credential)["ETag"]
    with django_assert_num_queries(1):
        assert door.get("/desired", credential, **{"If-None-Match": etag}).status_code == 304


def test_a_changed_poll_costs_the_same_for_one_item_and_for_twenty(
    door: Door, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    credential = door.enrolled("edge-1")
    for key in range(20):
        told(door, "edge-1", key=str(key))
    with django_assert_max_num_queries(3):
        assert len(door.get("/desired", credential).json()["items"]) == 20


def test_a_report_costs_two_queries(door: Door, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    credential = door.enrolled("edge-1")
    deployments = [{"uid": f"{number}", "revision": 1, "state": "converged"} for number in range(3)]
    with django_assert_num_queries(2):
        reply = door.report(credential, 1, deployments=deployments)
    assert reply.json() == {"sequence": 1}
    assert sorted(ReportInbox.objects.values_list("kind", flat=True)) == ["deployments", "facts"]


@pytest.mark.clause("DEV-3")
def test_a_document_is_for_the_devices_that_shall_have_it(door: Door) -> None:
    mine, theirs = door.enrolled("edge-1"), door.enrolled("edge-2")
    hash_ = told(door, "edge-1")
    reply = door.get(f"/documents/{hash_}", mine)
    assert reply.json() == {"text": "hello"}
    assert hashlib.sha256(reply.content).hexdigest() == hash_
    assert reply["ETag"] == f'"{hash_}"'
    assert "immutable" in reply["Cache-Control"]
    assert reply["X-Content-Type-Options"] == "nosniff"
    assert door.get(f"/documents/{hash_}", theirs).status_code == 404
    assert door.get("/documents/..%2Fx", mine).status_code == 404


def test_an_address_that_is_no_hash_is_no_document(door: Door) -> None:
    credential = door.enrolled("edge-1")
    for name in ("%00", "..%2F..%2Fx", "A" * 64):
        reply = door.get(f"/documents/{name}", credential)
        assert reply.status_code == 404
        assert reply["Content-Type"] == "application/problem+json"


@pytest.mark.clause("TSK-1")
def test_a_device_that_claims_to_be_a_canary_is_told_that_it_is_not(door: Door) -> None:
    credential = door.enrolled("edge-1")
    reply = door.report(credential, 1, facts={"labels": {"canary": "true", "role": "analyzer"}})
    assert reply.json()["notices"] == ["label 'canary' was ignored: it is set by the control plane only"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"sequence": 1}',
        b'{"sequence": 0, "facts": {}}',
        b'{"sequence": "1", "facts": {}}',
        b'{"sequence": 9223372036854775808, "facts": {}}',
        b'{"sequence": 1, "facts": {}, "deployments": [{"uid": "x", "revision": 2147483648, "state": "failed"}]}',
        b'{"sequence": 1, "facts": {"labels": {"a": 1}}}',
        b'{"sequence": 1, "facts": {}, "deployments": [{"uid": "x", "revision": 1, "state": "splendid"}]}',
        b"[" * 100_000,
        b'{"sequence": 1, "facts": {}, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_a_report_that_is_none_is_refused_and_nothing_is_kept(door: Door, body: bytes) -> None:
    credential = door.enrolled("edge-1")
    reply = door.post("/report", body, credential)
    assert reply.status_code == 422
    assert reply.json()["detail"].startswith("the body is no Report")
    assert not ReportInbox.objects.exists()


def test_a_nested_enrolment_is_refused_before_anybody_is_known(door: Door) -> None:
    body = b'{"device": "edge-1", "token": "x", "x": ' + b"[" * 1900 + b"]" * 1900 + b"}"
    reply = door.post("/enroll", body)
    assert reply.status_code == 422
    assert "nested" in reply.json()["detail"]


def test_a_report_that_is_too_large_is_refused(door: Door) -> None:
    credential = door.enrolled("edge-1")
    reply = door.post("/report", b" " * (MAX_REPORT_BYTES + 1), credential)
    assert reply.status_code == 413
    assert str(MAX_REPORT_BYTES) in reply.json()["detail"]
    assert not ReportInbox.objects.exists()


@pytest.mark.database(transaction=True)
def test_a_poll_goes_on_when_the_database_has_forgotten_its_statement(door: Door) -> None:
    credential = door.enrolled("edge-1")
    etag = door.get("/desired", credential)["ETag"]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("DEALLOCATE ALL")
    assert door.get("/desired", credential, **{"If-None-Match": etag}).status_code == 304
    assert door.get("/desired", "device_guess").status_code == 401


@pytest.mark.case("E6")
def test_reports_are_put_off_while_nobody_reads_them_and_polls_are_not(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_api, "MAX_UNREAD", 5)
    credential = door.enrolled("edge-1")
    answers = [door.report(credential, sequence) for sequence in range(1, 6)]
    assert [reply.status_code for reply in answers] == [200, 200, 200, 503, 503]
    assert answers[-1]["Retry-After"] == "30"
    assert "reports wait to be read" in answers[-1].json()["detail"]
    assert ReportInbox.objects.count() == 6
    assert door.get("/desired", credential).status_code == 200
    ReportInbox.objects.all().delete()
    assert door.report(credential, 6).status_code == 200


@pytest.mark.case("E6")
@pytest.mark.database(transaction=True)
def test_without_a_database_devices_are_asked_to_come_back(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    credential = door.enrolled("edge-1")
    connection.close()
    with monkeypatch.context() as away:
        away.setitem(connection.settings_dict, "NAME", "/nowhere/at/all")
        replies = [door.get("/desired", credential), door.report(credential, 1)]
    assert [reply.status_code for reply in replies] == [503, 503]
    assert replies[0]["Retry-After"] == "30"
    assert "database does not answer" in replies[0].json()["detail"]
    assert door.get("/desired", credential).status_code == 200


def test_fields_of_a_later_protocol_are_passed_over(door: Door) -> None:
    credential = door.enrolled("edge-1")
    reply = door.post("/report", {"sequence": 1, "facts": {"mood": "good"}, "weather": "fair"}, credential)
    assert reply.status_code == 200


def test_another_method_is_answered_with_the_right_one(door: Door) -> None:
    reply = door.client.delete("/api/agent/v1/desired")
    assert reply.status_code == 405
    assert reply["Allow"] == "GET"


def test_a_credential_never_travels_in_clear_where_tls_is_asked_for(door: Door, settings: Settings) -> None:
    credential = door.enrolled("edge-1")
    settings.SECURE_SSL_REDIRECT = True
    reply = door.get("/desired", credential)
    assert reply.status_code == 403
    assert "https only" in reply.json()["detail"]
