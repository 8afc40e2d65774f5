"""The end of a log, asked for and answered through the device's own poll (AGT-16)."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from django.contrib.auth.models import User
from django.test import Client

from agent.wire import canonical
from agent.wire.messages import LOGS_KIND, MAX_LOG_CHARS, LogReply, LogRequestDocument
from devices.models import Connectivity, Credential, DesiredHead, DesiredItem, Device
from devices.services import device_forget
from devices.services.tokens import hash_of
from fleet.core.errors import Conflict, Invalid, NotFound
from fleet.core.models import AuditEntry
from rollouts import services
from rollouts.models import Deployment, LogRequest, LogState
from rollouts.selectors.logs import log_request, log_sentence
from rollouts.services.logs import MOST_OPEN
from tests.integration.rollouts.together import together
from tests.integration.rollouts.world import World

pytestmark = pytest.mark.clause("AGT-16")


def enrolled(device: Device) -> Device:
    """With a credential that is its name."""
    Credential.objects.create(device=device, token_hash=hash_of(device.name), created_at=device.enrolled_at)
    return device


def post(device: Device | str, body: bytes | LogReply) -> Any:
    data = body if isinstance(body, bytes) else canonical.encode(body)
    credential = {"authorization": f"Bearer {device}"}
    return Client().post("/api/agent/v1/logs", data, content_type="application/json", headers=credential)


def items() -> list[str]:
    return list(DesiredItem.objects.filter(kind=LOGS_KIND).values_list("key", flat=True))


def now(request: LogRequest) -> LogRequest:
    return log_request(request.deployment, str(request.uid))


def ask(deployment: Deployment, **more: Any) -> LogRequest:
    return services.logs_request(deployment=deployment, actor=None, **more)


@pytest.mark.database
def test_a_log_is_asked_for_answered_once_and_forgotten_after_an_hour(world: World) -> None:
    user = User.objects.create(username="alice")
    device = enrolled(world.device("edge-1"))
    deployment = world.rollout()
    request = services.logs_request(deployment=deployment, lines=50, actor=user)
    item = DesiredItem.objects.select_related("document").get(kind=LOGS_KIND)
    assert (item.device_id, item.key) == (device.pk, str(request.uid))
    assert item.document is not None
    assert msgspec.json.decode(bytes(item.document.body), type=LogRequestDocument) == LogRequestDocument(
        request=str(request.uid), deployment=str(deployment.uid), container="api", lines=50
    )
    entry = AuditEntry.objects.get(action="logs")
    assert (entry.actor_name, entry.object_name) == ("alice", "default/api")
    assert entry.detail == {"device": "edge-1", "container": "api", "lines": 50}
    assert log_sentence(now(request), world.now) == "Waiting for edge-1 to send the log of api"

    version = DesiredHead.objects.get(device=device).version
    answer = post(device, LogReply(request=str(request.uid), text="one\ntwo\n"))
    assert (answer.status_code, answer.content) == (202, b"{}")
    assert (now(request).state, now(request).text) == (LogState.ANSWERED, "one\ntwo\n")
    assert log_sentence(now(request), world.now) == ""
    assert items() == []
    assert DesiredHead.objects.get(device=device).version == version + 1
    again = post(device, LogReply(request=str(request.uid), text="something else"))
    assert again.status_code == 202  # its first answer was lost on the way to it
    assert now(request).text == "one\ntwo\n"

    world.later(minutes=59)
    services.logs_tidy()
    assert now(request).text
    world.later(minutes=2)
    services.logs_tidy()
    with pytest.raises(NotFound, match="answers are kept for an hour"):
        now(request)


def test_what_the_device_could_not_do_is_said(world: World) -> None:
    device = enrolled(world.device("edge-1"))
    request = ask(world.rollout())
    assert post(device, LogReply(request=str(request.uid), problem="no container api is here")).status_code == 202
    assert now(request).state == LogState.FAILED
    assert log_sentence(now(request), world.now) == "edge-1 could not read the log: no container api is here"
    assert items() == []


def test_only_the_device_that_was_asked_may_answer(world: World) -> None:
    asked, other = (enrolled(each) for each in world.devices(["edge-1", "edge-2"]))
    request = ask(world.rollout(), device=asked)
    assert post(other, LogReply(request=str(request.uid), text="mine")).status_code == 404
    assert post("nobody", LogReply(request=str(request.uid), text="mine")).status_code == 401
    for unknown in (str(uuid.uuid4()), "not-a-uuid", ""):
        assert post(asked, LogReply(request=unknown, text="x")).status_code == 404
    assert (now(request).state, now(request).text) == (LogState.WAITING, "")
    assert items() == [str(request.uid)]


@pytest.mark.database
@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ('"a\\u0000b\\u001b[31mred"', "a�b\x1b[31mred"),
        ('"caf\\u00e9 \\ud83d\\ude00"', "café 😀"),
        (f'"{"ä" * MAX_LOG_CHARS}"', "ä" * MAX_LOG_CHARS),
    ],
)
def test_a_log_may_say_anything(world: World, sent: str, kept: str) -> None:
    device = enrolled(world.device("edge-1"))
    request = ask(world.rollout())
    body = f'{{"request":"{request.uid}","text":{sent},"is_cut":true}}'.encode()
    assert post(device, body).status_code == 202
    assert (now(request).text, now(request).is_cut) == (kept, True)


@pytest.mark.parametrize("sent", ['"\\ud800"', f'"{"x" * (MAX_LOG_CHARS + 1)}"', "5", '"' + "\\u0001" * 300_000 + '"'])
def test_what_is_no_log_is_refused_and_asked_for_still(world: World, sent: str) -> None:
    device = enrolled(world.device("edge-1"))
    request = ask(world.rollout())
    answer = post(device, f'{{"request":"{request.uid}","text":{sent}}}'.encode())
    assert answer.status_code in (202, 413, 422)
    assert (answer.status_code == 202) == (now(request).state == LogState.ANSWERED)


@pytest.mark.parametrize(
    ("connectivity", "reason"),
    [
        (Connectivity.OFFLINE, "offline since 14:00 UTC"),
        (Connectivity.ONLINE, "it is online; its agent may be too old to send logs"),
    ],
)
def test_a_request_that_nobody_answers_ends_with_the_reason(
    world: World, connectivity: Connectivity, reason: str
) -> None:
    device = enrolled(world.device("edge-7"))
    request = ask(world.rollout())
    world.goes(device, connectivity)
    world.later(minutes=9)
    services.logs_tidy()
    assert now(request).state == LogState.WAITING
    world.later(minutes=2)
    services.logs_tidy()
    assert now(request).state == LogState.EXPIRED
    assert log_sentence(now(request), world.now) == f"edge-7 did not answer within 10 min: {reason}"
    assert items() == []
    assert post(device, LogReply(request=str(request.uid), text="late")).status_code == 404
    assert now(request).text == ""


def test_a_device_has_a_few_open_requests_at_most(world: World) -> None:
    first, second = world.devices(["edge-1", "edge-2"])
    deployment = world.rollout()
    for _ in range(MOST_OPEN):
        ask(deployment, device=first)
    with pytest.raises(Conflict, match="edge-1 has 4 requests for logs open already; they end by themselves"):
        ask(deployment, device=first)
    ask(deployment, device=second)
    assert len(items()) == LogRequest.objects.count() == MOST_OPEN + 1
    assert AuditEntry.objects.filter(action="logs").count() == MOST_OPEN + 1


def test_what_has_to_be_said_and_what_is_allowed(world: World) -> None:
    first, _ = world.devices(["edge-1", "edge-2"])
    outside = world.device("edge-9", role="camera")
    deployment = world.apply().deployment
    assert deployment is not None
    with pytest.raises(Conflict, match="no device has default/api yet"):
        ask(deployment)
    world.evaluate(deployment)
    with pytest.raises(Invalid, match="device: default/api is on 2 devices; say which, such as edge-1, edge-2"):
        ask(deployment)
    with pytest.raises(Conflict, match="edge-9 does not have default/api"):
        ask(deployment, device=outside)
    with pytest.raises(Invalid, match="container: default/api has no 'web'; allowed: api"):
        ask(deployment, device=first, container="web")
    for lines in (0, -1, 2001):
        with pytest.raises(Invalid, match=f"lines: found {lines}; allowed: 1 to 2000"):
            ask(deployment, device=first, lines=lines)
    world.says(first, deployment, "converged", images={"old": "sha256:1"})  # of the revision before
    world.drain()
    assert ask(deployment, device=first, container="old").container == "old"
    manifest = world.manifest()
    data = manifest["spec"]["score"]["data"]
    data["services"].append({"name": "web", "image": "registry.example.com/web:1"})
    data["init_container"] = {"name": "migrate", "image": "registry.example.com/migrate:1"}
    deployment = world.rollout(manifest)
    with pytest.raises(Invalid, match="container: default/api has several; say which: api, web, migrate"):
        ask(deployment, device=first)
    assert ask(deployment, device=first, container="migrate").container == "migrate"


@pytest.mark.database
@pytest.mark.parametrize("how", ["device forgotten", "deployment ended", "row lost"])
def test_no_item_is_left_behind(world: World, how: str) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    request = ask(deployment)
    if how == "device forgotten":
        device_forget(device=device, actor=None)
    elif how == "deployment ended":
        services.deployment_delete(deployment=deployment, actor=None)
        services.deployment_forget_device(deployment=deployment, device=device, actor=None)
        assert not Deployment.objects.exists()
    else:
        LogRequest.objects.filter(pk=request.pk).delete()
        services.logs_tidy()
    assert items() == []
    assert not LogRequest.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_asking_answering_expiring_and_forgetting_at_once(world: World) -> None:
    devices = [enrolled(each) for each in world.devices([f"edge-{n}" for n in range(6)])]
    deployment = world.rollout()
    requests = [ask(deployment, device=device) for device in devices for _ in range(2)]
    world.later(minutes=11)

    def answer(which: list[LogRequest]) -> Callable[[], Any]:
        return lambda: [post(each.device, LogReply(request=str(each.uid), text="text")) for each in which]

    def demand() -> None:
        for device in devices[:5]:
            for _ in range(3):
                ask(deployment, device=device)

    raised = together(
        answer(requests),
        answer(requests[::-1]),
        services.logs_tidy,
        services.logs_tidy,
        demand,
        lambda: device_forget(device=devices[5], actor=None),
    )
    assert [error for error in raised if not isinstance(error, Conflict)] == []
    waiting = {str(uid) for uid in LogRequest.objects.filter(state=LogState.WAITING).values_list("uid", flat=True)}
    assert set(items()) == waiting
    assert not LogRequest.objects.filter(pk__in=[each.pk for each in requests], state=LogState.WAITING).exists()
