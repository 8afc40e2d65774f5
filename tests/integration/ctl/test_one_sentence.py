"""What an object waits for is one sentence, the same from every entrance (DEP-16)."""

from __future__ import annotations

import html

import pytest
from django.test import Client

from devices.models import Connectivity
from rollouts import services
from rollouts.models import Deployment
from tests.integration.api.rest import Rest
from tests.integration.ctl.cli import Fleetctl
from tests.integration.rollouts.world import World


@pytest.mark.clause("API-2", "DEP-16")
def test_admin_api_and_fleetctl_say_the_same(fleetctl: Fleetctl, world: World, admin_client: Client) -> None:
    world.goes(world.device("edge-7", canary=True), Connectivity.OFFLINE)
    failing, away = world.device("edge-1", role="web"), world.device("edge-2", role="old")
    world.rollout(world.manifest("canary"))
    world.rollout(world.manifest("pending", role="none"))
    failed = world.rollout(world.manifest("failed", role="web"))
    world.says(failing, failed, "failed", "init exited with 3")
    going = world.rollout(world.manifest("going", role="old"))
    world.goes(away, Connectivity.OFFLINE)
    world.drain()
    services.deployment_delete(deployment=going, actor=None)
    sentences = {
        "canary": "Waiting for canary edge-7: offline since 14:00 UTC",
        "pending": "No device has the labels role=none",
        "failed": "edge-1 failed: init exited with 3; fix it or apply a new revision",
        "going": "Waiting for edge-2 to remove its containers: offline since 14:00 UTC; "
        "if it will not come back: fleetctl forget-device default/going edge-2",
    }
    user = admin_client.get("/admin/").wsgi_request.user
    listed = {
        each["metadata"]["name"]: each["status"]["message"] for each in Rest.of(user).get("deployments/")["results"]
    }
    table = fleetctl("get", "deployments", "-A", "-o", "json").stdout
    changelist = html.unescape(admin_client.get("/admin/rollouts/deployment/").content.decode())
    for name, sentence in sentences.items():
        deployment = Deployment.objects.get(name=name)
        page = admin_client.get(f"/admin/rollouts/deployment/{deployment.pk}/change/").content.decode()
        assert listed[name] == sentence
        for shown in (html.unescape(page), changelist, table):
            assert sentence in shown, name
    described = fleetctl("describe", "deployment", "going").stdout
    assert f"Status:     {sentences['going']}\n" in described
