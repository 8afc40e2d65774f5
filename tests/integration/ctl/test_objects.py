"""``get``, ``describe`` and what is done to devices, groups, tokens and deployments."""

from __future__ import annotations

import json

import pytest
import yaml

from devices.models import Connectivity, Device, DeviceGroup, EnrolmentToken
from devices.services.tokens import hash_of
from rollouts.models import Deployment
from tests.integration.ctl.cli import Fleetctl
from tests.integration.rollouts.world import World

pytestmark = pytest.mark.clause("API-2")


def test_get_shows_tables_that_scripts_can_read_too(fleetctl: Fleetctl, world: World) -> None:
    world.device("edge-1", canary=True)
    world.goes(world.device("edge-2", role="camera"), Connectivity.OFFLINE)
    head, first, second = fleetctl("get", "devices").lines
    assert head.split("   ")[0] == "NAME"
    assert first.split()[:2] == ["edge-1", "online"]
    assert second.split()[:2] == ["edge-2", "offline"]
    assert second.endswith("role=camera")
    assert len(fleetctl("get", "devices", "-l", "role=camera").lines) == 2
    assert "\x1b" not in fleetctl("get", "devices").stdout


def test_get_shows_json_yaml_and_names(fleetctl: Fleetctl, world: World) -> None:
    world.devices(["edge-1", "edge-2"])
    found = json.loads(fleetctl("get", "devices", "-o", "json").stdout)
    assert [each["status"]["connectivity"] for each in found["items"]] == ["online", "online"]
    assert yaml.safe_load(fleetctl("get", "devices", "-o", "yaml").stdout) == found
    assert fleetctl("get", "devices", "-o", "name").lines == ["edge-1", "edge-2"]
    assert yaml.safe_load(fleetctl("get", "device", "edge-1", "-o", "yaml").stdout) == found["items"][0]


def test_get_deployments_by_namespace(fleetctl: Fleetctl, world: World) -> None:
    world.rollout()
    world.apply({**world.manifest("web"), "metadata": {"name": "web", "namespace": "shop", "labels": {"a": "b"}}})
    assert fleetctl("get", "deployments", "-o", "name").lines == ["default/api"]
    assert fleetctl("get", "deployments", "-n", "shop", "-o", "name").lines == ["shop/web"]
    assert fleetctl("get", "deployments", "-A", "-o", "name").lines == ["default/api", "shop/web"]
    assert fleetctl("get", "deployments", "-A", "-l", "a=b", "-o", "name").lines == ["shop/web"]
    sentence = world.revision(Deployment.objects.get(name="api")).message
    assert sentence in fleetctl("get", "deployment", "api").stdout
    assert fleetctl("get", "deployment", "none").code == 3


def test_a_list_of_many_pages_is_shown_whole(fleetctl: Fleetctl, world: World) -> None:
    world.devices([f"edge-{number}" for number in range(501)])
    assert len(fleetctl("get", "devices", "-o", "name").lines) == 501


def test_describe_a_deployment(fleetctl: Fleetctl, world: World) -> None:
    failing = world.device("edge-1", canary=True)
    world.goes(world.device("edge-2"), Connectivity.OFFLINE)
    deployment = world.rollout()
    world.says(failing, deployment, "failed", "image \x1b[31mnot\x1b[0m found")
    world.drain()
    world.evaluate(deployment)
    done = fleetctl("describe", "deployment", "api")
    assert done.code == 0
    assert "\x1b" not in done.stdout
    text = " ".join(done.stdout.split())
    assert "Phase: Failed since 2026-12-01 14:00:00 UTC" in text
    assert f"Status: {world.revision(deployment).message.translate({27: '�'})}" in text
    assert "Devices: 2 matched, 1 released, 0 converged, 1 failed, 1 offline" in text
    assert "edge-2 no held offline" in text
    assert "has the labels role=analyzer; is in group lab" in text
    assert "TargetsFrozen True" in text
    assert "1 Canary Failed" in text
    assert "Events: AT REASON MESSAGE 2026-12-01 14:00:00 UTC Failed Canary edge-1 failed" in text


@pytest.mark.clause("DEP-18")
def test_describe_says_what_a_tag_stands_for(fleetctl: Fleetctl, world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    world.says(device, deployment, "converged", images={"api": f"sha256:{'a' * 64}"})
    world.drain()
    text = " ".join(fleetctl("describe", "deployment", "api").stdout.split())
    assert f"Images: REFERENCE DIGEST PROVEN BY NOTE registry.example.com/api:1.0 sha256:{'a' * 64} edge-1" in text


def test_describe_a_device(fleetctl: Fleetctl, world: World) -> None:
    device = world.device("edge-1", canary=True)
    deployment = world.rollout()
    world.says(device, deployment, "progressing", "pulling the image")
    world.drain()
    Device.objects.update(problems=[{"field": "labels.x", "message": "ignored"}])
    text = " ".join(fleetctl("describe", "device", "edge-1").stdout.split())
    assert "Connectivity: online since 2026-12-01 14:00:00 UTC" in text
    assert "Problems: field: labels.x; message: ignored" in text
    assert "default/api yes released progressing 1 pulling the image" in text


def test_devices_are_marked_labelled_reset_and_forgotten(fleetctl: Fleetctl, world: World) -> None:
    device = world.device("edge-1")
    assert fleetctl("device", "canary", "edge-1").stdout == "device edge-1 is a canary\n"
    assert Device.objects.get().canary
    assert fleetctl("device", "canary", "edge-1", "--off").code == 0
    assert not Device.objects.get().canary
    assert fleetctl("device", "label", "edge-1", "tier=a", "site=north").code == 0
    assert fleetctl("device", "label", "edge-1", "site-").lines == ["device edge-1 has the operator's labels tier=a"]
    assert Device.objects.get().operator_labels == {"tier": "a"}
    assert fleetctl("device", "label", "edge-1", "tier").code == 2
    refused = fleetctl("device", "label", "edge-1", "canary=true")
    assert refused.code == 1
    assert refused.stderr.startswith("fleetctl: labels.canary: ")
    assert fleetctl("device", "reset", "edge-1").code == 0
    assert device.reenrolmentpermit
    assert fleetctl("device", "forget", "edge-1").code == 0
    assert not Device.objects.exists()
    done = fleetctl("device", "canary", "edge-1")
    assert (done.code, done.stderr) == (3, "fleetctl: there is no device 'edge-1'\n")


def test_groups(fleetctl: Fleetctl, world: World) -> None:
    world.devices(["edge-1", "edge-2"], groups=[])
    assert fleetctl("group", "create", "plant").stdout == "group plant created\n"
    assert fleetctl("group", "create", "plant").code == 5
    assert fleetctl("group", "set", "plant", "edge-1", "edge-2").stdout == "group plant has 2 devices\n"
    assert fleetctl("group", "set", "plant", "edge-9").code == 3
    assert fleetctl("group", "list", "-o", "name").lines == ["plant"]
    assert fleetctl("get", "groups").lines[1].split() == ["plant", "2", "-"]
    assert fleetctl("group", "set", "plant").code == 0
    assert fleetctl("group", "delete", "plant").code == 0
    assert not DeviceGroup.objects.exists()


@pytest.mark.clause("DEV-1")
def test_tokens(fleetctl: Fleetctl, world: World) -> None:
    world.group("lab")
    options = ("--group", "lab", "--uses", "5", "--expires-in", "1h", "--label", "site=north")
    done = fleetctl("token", "create", "line-4", *options, "-o", "name")
    token = EnrolmentToken.objects.get()
    assert done.code == 0
    assert hash_of(done.stdout.removesuffix("\n")) == token.token_hash
    assert (token.use_limit, token.labels) == (5, {"site": "north"})
    assert str(token.expires_at) == "2026-12-01 15:00:00+00:00"
    shown = fleetctl("token", "list")
    assert shown.lines[1].split()[:2] == ["line-4", "0/5"]
    assert done.stdout.strip() not in shown.stdout + fleetctl("get", "token", "line-4", "-o", "yaml").stdout
    assert fleetctl("token", "create", "line-4").code == 5
    assert fleetctl("token", "create", "x", "--expires-in", "tomorrow").code == 2
    assert fleetctl("token", "create", "x", "--label", "site").code == 2
    assert fleetctl("token", "revoke", "line-4").code == 0
    assert EnrolmentToken.objects.get().revoked_at is not None


def test_a_rollout_is_retargeted_and_ended(fleetctl: Fleetctl, world: World) -> None:
    world.device("edge-1", canary=True)
    world.rollout()
    done = fleetctl("retarget", "api")
    assert done.stdout == "deployment default/api retargeted: generation 2 freezes its targets anew\n"
    done = fleetctl("end", "default/api")
    assert done.stdout.startswith("deployment default/api: Cancelled. Ended by ada")
    assert fleetctl("retarget", "none").code == 3


def test_deleting_says_whom_it_waits_for(fleetctl: Fleetctl, world: World) -> None:
    world.goes(world.device("edge-1"), Connectivity.OFFLINE)
    world.rollout()
    done = fleetctl("delete", "api")
    assert done.code == 0
    assert "default/api is being deleted. Waiting for edge-1 to remove its containers" in done.stdout
    assert fleetctl("retarget", "api").code == 5
    done = fleetctl("delete", "api", "--wait", "--timeout", "0")
    assert done.code == 6
    assert "not gone after 0 s: Waiting for edge-1" in done.stderr


@pytest.mark.clause("DEP-14")
def test_the_sentence_of_a_deletion_is_a_command_that_ends_it(fleetctl: Fleetctl, world: World) -> None:
    world.goes(world.device("edge-1"), Connectivity.OFFLINE)
    world.goes(world.device("edge-2"), Connectivity.OFFLINE)
    world.rollout()
    sentence = fleetctl("delete", "api").stdout
    assert "if edge-1 will not come back: fleetctl forget-device default/api edge-1" in sentence
    done = fleetctl(*sentence.strip().rpartition("fleetctl ")[2].split())
    assert done.stdout.startswith(
        "deployment default/api gave up edge-1; it is still being deleted. Waiting for edge-2 to remove its containers"
    )
    assert fleetctl("forget-device", "api", "edge-1").code == 5
    assert fleetctl("forget-device", "api", "edge-2").stdout == (
        "deployment default/api gave up edge-2; it is deleted now\n"
    )


def test_what_a_file_names_is_deleted(fleetctl: Fleetctl, world: World) -> None:
    world.rollout()
    web = {**world.manifest("web"), "metadata": {"name": "web", "namespace": "shop"}}
    world.apply(web)
    done = fleetctl("delete", "-f", "-", "--wait", stdin=yaml.safe_dump_all([world.manifest(), web]))
    assert done.lines == ["deployment default/api deleted", "deployment shop/web deleted"]
    assert not Deployment.objects.exists()
    assert fleetctl("delete", "-f", "-", stdin="- 1\n").code == 2
    assert fleetctl("delete").code == 2


@pytest.mark.parametrize("name", ["..", "a/b/c", "../../../devices/edge-1", "%2e%2e", "a?b", "a#b", "ä"])
def test_a_strange_name_is_a_name_and_no_path(fleetctl: Fleetctl, world: World, name: str) -> None:
    world.device("edge-1")
    assert fleetctl("delete", name).code in (2, 3)
    assert fleetctl("device", "forget", name).code in (2, 3)
    assert Device.objects.exists()


def test_version(stranger: Fleetctl) -> None:
    assert stranger("version").stdout.startswith("fleetctl 0.")
