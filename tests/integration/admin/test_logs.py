"""The pages of logs (AGT-16)."""

from __future__ import annotations

import pytest
from django.test import Client

from agent.wire.messages import LogReply
from fleet.core.models import AuditEntry
from rollouts import services
from rollouts.models import LogRequest
from tests.integration.admin.pages import at, buttons, words
from tests.integration.rollouts.world import World

pytestmark = pytest.mark.clause("ADM-1", "AGT-16")


def test_a_log_is_asked_for_and_shown_when_it_arrives(operator: Client, world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    page = operator.get(at("rollouts_deployment_change", deployment.pk))
    assert "logs" in buttons(page)
    address = at("rollouts_deployment_logs", deployment.pk)
    assert f'href="{address}?device=edge-1"' in page.content.decode()
    form = operator.get(address)
    assert 'value="edge-1"' in form.content.decode()  # the only one
    asked = operator.post(address, {"device": "edge-1", "container": "api", "lines": "20"}, follow=True)
    request = LogRequest.objects.get()
    assert asked.redirect_chain[-1][0] == at("rollouts_deployment_log", deployment.pk, request.uid)
    assert "Waiting for edge-1 to send the log of api" in words(asked)
    assert "live.js" in asked.content.decode()
    assert AuditEntry.objects.get(action="logs").actor_name == "operator"

    hostile = "<script>alert(1)</script> \x1b[31mred {{ 7 }}"
    services.logs_answer(device_id=device.pk, reply=LogReply(request=str(request.uid), text=hostile, is_cut=True))
    part = operator.get(at("rollouts_deployment_log_live", deployment.pk, request.uid))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in part.content.decode()
    assert "<script>alert" not in part.content.decode()
    assert "data-live-done" in part.content.decode()
    done = operator.get(at("rollouts_deployment_log", deployment.pk, request.uid))
    assert "The beginning is cut off" in words(done)
    assert "no-store" in done.headers["Cache-Control"]
    assert "live.js" not in done.content.decode()


def test_a_wrong_question_is_answered_on_the_page(operator: Client, world: World) -> None:
    world.device("edge-1")
    world.device("edge-9", role="camera")
    deployment = world.rollout()
    address = at("rollouts_deployment_logs", deployment.pk)
    asked = {"device": "edge-1", "container": "api", "lines": "20"}
    for wrong, message in (
        ({"device": "edge-7"}, "There is no device 'edge-7'."),
        ({"device": "edge-9"}, "edge-9 does not have default/api"),
        ({"lines": "0"}, "greater than or equal to 1"),
        ({"container": "web"}, "web is not one of the available choices"),
    ):
        assert message in words(operator.post(address, asked | wrong))
    assert not LogRequest.objects.exists()
    unknown = at("rollouts_deployment_log", deployment.pk, "00000000-0000-0000-0000-000000000000")
    assert operator.get(unknown).status_code == 404


def test_who_may_only_look_reads_no_logs(viewer: Client, world: World) -> None:
    world.device("edge-1")
    deployment = world.rollout()
    services.logs_request(deployment=deployment, actor=None)
    request = LogRequest.objects.get()
    page = viewer.get(at("rollouts_deployment_change", deployment.pk))
    assert "logs" not in buttons(page)
    for view, arguments in (("logs", ()), ("log", (request.uid,)), ("log_live", (request.uid,))):
        assert viewer.get(at(f"rollouts_deployment_{view}", deployment.pk, *arguments)).status_code == 403
