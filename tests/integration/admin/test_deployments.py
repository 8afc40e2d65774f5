"""The deployments' pages: write, preview, confirm, watch, act."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from django.contrib.auth.models import Group
from django.test import Client

from devices.models import Connectivity
from fleet.core.models import AuditEntry
from rollouts import services
from rollouts.models import Deployment, Phase, Revision, Target
from tests.integration.admin.pages import at, buttons, rows, words
from tests.integration.rollouts.world import World

pytestmark = pytest.mark.clause("ADM-1")
LIST, ADD = "rollouts_deployment_changelist", "rollouts_deployment_add"


def post(client: Client, address: str, text: str | dict[str, Any], stage: str) -> Any:
    manifest = text if isinstance(text, str) else yaml.safe_dump(text, sort_keys=False)
    return client.post(address, {"manifest": manifest, "stage": stage}, follow=True)


# Writing -------------------------------------------------------------------------------------------------------------


@pytest.mark.clause("DEP-1")
def test_a_manifest_is_previewed_confirmed_and_audited(operator: Client, world: World) -> None:
    world.device("edge-1", canary=True)
    world.devices(["edge-2", "edge-3"])
    preview = post(operator, at(ADD), world.manifest(), "preview")
    text = words(preview)
    assert "default/api would be created" in text
    assert "Would match 3 devices" in text
    assert "Canaries, first edge-1" in text
    assert not Deployment.objects.exists()

    done = post(operator, at(ADD), world.manifest(), "apply")
    deployment = Deployment.objects.get()
    assert done.redirect_chain[-1][0] == at("rollouts_deployment_change", deployment.pk)
    assert "default/api created (generation 1)." in words(done)
    assert AuditEntry.objects.get(object_name="default/api").actor_name == "operator"


@pytest.mark.clause("DEP-2")
def test_all_faults_are_shown_at_once_with_path_and_line_and_nothing_is_made(operator: Client, world: World) -> None:
    manifest = world.manifest()
    service = manifest["spec"]["score"]["data"]["services"][0]
    service["imgae"] = service.pop("image")
    service["ports"] = ["nonsense"]
    service["env"] = [{"name": "PASSWORD", "value": 12345678}]
    manifest["spec"]["rollout"]["percentage"] = 20
    source = yaml.safe_dump(manifest, sort_keys=False)
    page = post(operator, at(ADD), source, "preview")
    text = words(page)
    assert page.status_code in (400, 413, 422)
    for path in (
        "spec.score.data.services[0].imgae",
        "spec.score.data.services[0].ports[0]",
        "spec.rollout.percentage",
    ):
        assert path in text
    line = source.splitlines().index(
        "      - nonsense" if "      - nonsense" in source.splitlines() else "        - nonsense"
    )
    assert f'data-line="{line + 1}"' in page.content.decode()
    assert source.strip().splitlines()[-1] in page.content.decode()  # the text is kept for mending
    faults = page.content.decode().partition('id="faults"')[2]
    assert "12345678" not in faults
    assert not Deployment.objects.exists()


@pytest.mark.parametrize("text", ["", "}{", "a: &x 1\nb: *x", "- 1", "kind: Pod", "\x00", "a: 1\na: 2", "[" * 5000])
def test_text_that_is_no_manifest_is_a_clear_refusal(operator: Client, text: str) -> None:
    page = post(operator, at(ADD), text, "apply")
    assert page.status_code in (400, 413, 422)
    assert "Not accepted" in words(page)
    assert not Deployment.objects.exists()


def test_a_manifest_that_looks_like_html_stays_text(operator: Client) -> None:
    page = post(operator, at(ADD), "</textarea><script>alert(1)</script>", "preview")
    assert "<script>alert(1)" not in page.content.decode()


@pytest.mark.clause("DEP-7")
def test_a_group_that_one_may_not_deploy_to_is_named(operator: Client, world: World) -> None:
    world.group("production")
    for stage in ("preview", "apply"):
        page = post(operator, at(ADD), world.manifest(groups=["production"]), stage)
        assert page.status_code == 403
        assert "may not deploy to group production" in words(page)
    assert not Deployment.objects.exists()


@pytest.mark.clause("DEP-10", "DEP-16")
def test_the_preview_says_why_nobody_would_match(operator: Client, world: World) -> None:
    world.device("edge-1", role="camera")
    text = words(post(operator, at(ADD), world.manifest(), "preview"))
    assert "No device would match now." in text
    assert "No device has the labels role=analyzer" in text


def test_several_documents_are_applied_all_or_none(operator: Client, world: World) -> None:
    world.group("production")
    good, denied = world.manifest("one"), world.manifest("two", groups=["production"])
    both = yaml.safe_dump_all([good, denied])
    assert post(operator, at(ADD), both, "apply").status_code == 403
    assert not Deployment.objects.exists()
    world.group("production").deployers.add(Group.objects.get(name="operator"))
    assert post(operator, at(ADD), both, "apply").redirect_chain[-1][0] == at(LIST)
    assert Deployment.objects.count() == 2


@pytest.mark.clause("DEP-9")
def test_the_editor_begins_with_what_runs_and_saving_that_changes_nothing(operator: Client, world: World) -> None:
    deployment = world.rollout()
    address = at("rollouts_deployment_edit", deployment.pk)
    source = operator.get(address).context["manifest"]
    assert source.startswith("apiVersion: fleet.nationtech.io/v1alpha1\nkind: Deployment\n")
    assert "nothing would change" in words(post(operator, address, source, "preview"))
    post(operator, address, source, "apply")
    assert Revision.objects.count() == 1


@pytest.mark.clause("DEP-9", "DEP-10")
def test_the_preview_of_a_change_shows_what_differs_and_who_joins_and_leaves(operator: Client, world: World) -> None:
    world.device("edge-1")
    deployment = world.rollout()
    world.device("cam-1", role="camera")
    changed = world.manifest(role="camera")
    text = words(post(operator, at("rollouts_deployment_edit", deployment.pk), changed, "preview"))
    assert "would be changed, generation 2" in text
    assert "New in the set cam-1" in text
    assert "Leaves the set edge-1" in text
    assert "- role: analyzer" in text
    assert "+ role: camera" in text
    assert world.revision(deployment).generation == 1


@pytest.mark.clause("DEP-10")
def test_the_preview_of_the_same_spec_names_the_latecomers(operator: Client, world: World) -> None:
    world.device("edge-1")
    deployment = world.rollout()
    world.device("edge-2")
    text = words(post(operator, at("rollouts_deployment_edit", deployment.pk), world.manifest(), "preview"))
    assert "1 latecomer" in text
    assert "edge-2" in text


# The list ------------------------------------------------------------------------------------------------------------


def test_an_empty_list_says_how_to_begin(operator: Client) -> None:
    page = operator.get(at(LIST))
    assert "fleetctl apply -f" in words(page)
    assert "Apply a manifest" in words(page)


@pytest.mark.clause("DEP-15", "DEP-16")
def test_the_list_says_how_far_each_is_and_what_it_waits_for(viewer: Client, world: World) -> None:
    canary = world.device("edge-7", canary=True)
    world.device("edge-8")
    deployment = world.rollout()
    world.goes(canary, Connectivity.OFFLINE)
    world.evaluate(deployment)
    (row,) = rows(viewer.get(at(LIST)))
    assert "Canary" in row
    assert "0 of 2 converged, 1 offline" in row
    assert "Waiting for canary edge-7: offline since 14:00 UTC" in row


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"q": "default/one"}, {"default/one"}),
        ({"q": "two"}, {"default/two"}),
        ({"phase": "Pending"}, {"default/two"}),
        ({"phase": "Releasing"}, {"default/one"}),
        ({"namespace": "default"}, {"default/one", "default/two"}),
    ],
)
def test_the_list_can_be_narrowed(viewer: Client, world: World, query: dict[str, str], expected: set[str]) -> None:
    world.device("edge-1")
    world.rollout(world.manifest("one"))
    world.rollout(world.manifest("two", role="nobody"))
    assert {"".join(row.split()[:2]) for row in rows(viewer.get(at(LIST), query))} == expected


# The rollout view ----------------------------------------------------------------------------------------------------


def _view(client: Client, deployment: Deployment, **query: object) -> Any:
    return client.get(at("rollouts_deployment_change", deployment.pk), query)


@pytest.mark.clause("DEP-15", "DEP-16")
def test_the_view_tells_the_whole_story_of_a_rollout(viewer: Client, world: World) -> None:
    canary, other = world.device("edge-1", canary=True), world.device("edge-2")
    deployment = world.rollout()
    text = words(_view(viewer, deployment))
    assert "Waiting for canary edge-1: has not reported on this revision yet" in text
    assert "1 held back" in text
    assert "has the labels role=analyzer; is in group lab" in text

    world.says(canary, deployment, "converged")
    world.drain()
    world.evaluate(deployment)
    text = words(_view(viewer, deployment))
    assert "Waiting for device edge-2" in text or "Waiting for edge-2" in text
    assert "0 held back" in text
    assert "sha256:1" in text

    world.says(other, deployment, "converged")
    world.drain()
    world.evaluate(deployment)
    text = words(_view(viewer, deployment))
    assert "Done: 2 devices proved this revision" in text


@pytest.mark.clause("DEP-12")
def test_the_view_shows_where_a_rollout_failed(viewer: Client, world: World) -> None:
    canary = world.device("edge-1", canary=True)
    world.device("edge-2")
    deployment = world.rollout()
    world.says(canary, deployment, "failed", "init container migrate exited with 3")
    world.drain()
    world.evaluate(deployment)
    page = _view(viewer, deployment)
    assert "Canary edge-1 failed: init container migrate exited with 3" in words(page)
    steps = {step.name: step.look for step in page.context["steps"]}
    assert steps == {"Pending": "done", "Canary": "now failed", "Releasing": "ahead", "Converged": "ahead"}


def test_a_set_without_canary_skips_that_step(viewer: Client, world: World) -> None:
    world.device("edge-1")
    steps = _view(viewer, world.rollout()).context["steps"]
    assert [step.look for step in steps] == ["done", "skipped", "now", "ahead"]


def test_the_live_part_is_only_what_changes(viewer: Client, world: World) -> None:
    world.device("edge-1")
    deployment = world.rollout()
    page = viewer.get(at("rollouts_deployment_live", deployment.pk))
    assert "no-store" in page["Cache-Control"]
    html = page.content.decode()
    assert "<html" not in html
    for part in ("headline", "latecomers", "canaries", "targets", "revisions", "records"):
        assert f'data-part="{part}"' in html
        assert f'data-part="{part}"' in _view(viewer, deployment).content.decode()


def test_the_live_part_is_for_those_who_may_see_it(client: Client, world: World) -> None:
    deployment = world.rollout()
    assert client.get(at("rollouts_deployment_live", deployment.pk)).status_code == 302


@pytest.mark.clause("DEP-10")
def test_latecomers_are_named_with_the_button_that_includes_them(
    operator: Client, viewer: Client, world: World
) -> None:
    world.device("edge-1")
    deployment = world.rollout()
    world.device("edge-2")
    services.count_latecomers()
    retarget = at("rollouts_deployment_retarget", deployment.pk)
    page = _view(operator, deployment)
    assert "1 latecomer" in words(page)
    assert "edge-2" in words(page)
    assert retarget in page.content.decode()
    assert retarget not in _view(viewer, deployment).content.decode()

    operator.post(retarget)
    assert set(world.evaluate(deployment).targets.values_list("device_name", flat=True)) == {"edge-1", "edge-2"}


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({}, 50),
        ({"page": 2}, 11),
        ({"page": "nonsense"}, 50),
        ({"state": "converged"}, 1),
        ({"state": "released"}, 50),
        ({"state": "offline"}, 1),
        ({"state": "held"}, 0),
        ({"state": "nonsense"}, 50),
        ({"find": "edge-11"}, 1),
    ],
)
def test_targets_are_paged_and_found(viewer: Client, world: World, query: dict[str, Any], shown: int) -> None:
    devices = world.devices([f"edge-{n:02}" for n in range(61)])
    deployment = world.rollout()
    world.says(devices[3], deployment, "converged")
    world.goes(devices[5], Connectivity.OFFLINE)
    world.drain()
    world.evaluate(deployment)
    assert len(_view(viewer, deployment, **query).context["targets"]) == shown


def test_a_forgotten_device_stays_in_the_picture(viewer: Client, world: World) -> None:
    device = world.device("edge-1", canary=True)
    deployment = world.rollout()
    device.delete()
    text = words(_view(viewer, deployment))
    assert "edge-1" in text
    assert "forgotten" in text


# Acting --------------------------------------------------------------------------------------------------------------


@pytest.mark.clause("DEP-17")
def test_ending_a_rollout_is_confirmed_and_final(operator: Client, world: World) -> None:
    world.device("edge-1", canary=True)
    world.device("edge-2")
    deployment = world.rollout()
    address = at("rollouts_deployment_end", deployment.pk)
    assert "1 device of 2 were not released and never will be" in words(operator.get(address))
    done = operator.post(address, follow=True)
    assert world.revision(deployment).phase == Phase.CANCELLED
    assert Target.objects.get(device_name="edge-2").state == "ended"
    assert "end" not in buttons(done)
    assert AuditEntry.objects.filter(action="end", actor_name="operator").exists()


@pytest.mark.clause("DEP-14")
def test_a_deletion_waits_for_its_devices_and_says_so(operator: Client, world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    world.goes(device, Connectivity.OFFLINE)
    done = operator.post(at("rollouts_deployment_remove", deployment.pk), follow=True)
    text = words(done)
    assert "Deleting" in text
    assert "Waiting for edge-1 to remove its containers: offline since 14:00 UTC" in text
    assert buttons(done) == {"forget-device"}
    refused = operator.post(at("rollouts_deployment_retarget", deployment.pk))
    assert refused.status_code == 409


@pytest.mark.clause("DEP-14")
def test_a_device_that_will_not_come_back_is_given_up_after_a_question(operator: Client, world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    world.goes(device, Connectivity.OFFLINE)
    operator.post(at("rollouts_deployment_remove", deployment.pk))
    address = at("rollouts_deployment_forget-device", deployment.pk)
    asked = operator.get(address)
    assert "Nobody knows whether its containers still run there" in words(asked)
    assert 'value="edge-1"' in asked.content.decode()
    wrong = operator.post(address, {"device": "edge-9"})
    assert "There is no device 'edge-9'." in words(wrong)
    other = world.device("edge-2", role="camera")
    assert "does not wait for edge-2; it waits for edge-1" in words(operator.post(address, {"device": other.name}))
    done = operator.post(address, {"device": "edge-1"}, follow=True)
    assert "The deletion of default/api waits for edge-1 no more." in words(done)
    assert not Deployment.objects.exists()
    assert AuditEntry.objects.filter(action="forget-device", actor_name="operator").exists()


@pytest.mark.case("R3")
def test_a_deployment_that_nobody_has_is_gone_at_once(operator: Client, world: World) -> None:
    deployment = world.rollout()
    done = operator.post(at("rollouts_deployment_remove", deployment.pk), follow=True)
    assert done.redirect_chain[-1][0] == at(LIST)
    assert not Deployment.objects.exists()


@pytest.mark.clause("DEP-7")
def test_retargeting_needs_the_group_too(operator: Client, administrator: Client, world: World) -> None:
    world.device("edge-1", groups=["production"])
    deployment = world.rollout(world.manifest(groups=["production"]))
    refused = operator.post(at("rollouts_deployment_retarget", deployment.pk))
    assert refused.status_code == 403
    assert "may not deploy to group production" in words(refused)
    assert administrator.post(at("rollouts_deployment_retarget", deployment.pk)).status_code == 302
    assert world.revision(deployment).generation == 2
