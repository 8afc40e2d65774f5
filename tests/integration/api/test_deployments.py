"""Deployments over REST, in the form of Kubernetes objects."""

from __future__ import annotations

import pytest
import yaml

from devices.models import Connectivity
from rollouts.models import Deployment, Phase
from tests.integration.api.rest import Rest, problem
from tests.integration.rollouts.world import World

pytestmark = [pytest.mark.clause("API-1"), pytest.mark.database]
API = "namespaces/default/deployments/api/"


@pytest.mark.clause("DEP-15", "DEP-16")
def test_a_deployment_looks_like_a_kubernetes_object(viewer: Rest, world: World) -> None:
    world.device("edge-1", canary=True)
    world.device("edge-2")
    deployment = world.rollout(world.manifest(labels={"team": "imaging"}))
    found = viewer.get(API)
    assert (found["apiVersion"], found["kind"]) == ("fleet.nationtech.io/v1alpha1", "Deployment")
    assert found["metadata"] == {
        "name": "api",
        "namespace": "default",
        "uid": str(deployment.uid),
        "generation": 1,
        "creationTimestamp": "2026-12-01T14:00:00Z",
        "deletionTimestamp": None,
        "labels": {"team": "imaging"},
        "annotations": {},
    }
    assert found["spec"]["allowedGroups"] == ["lab"]
    status = found["status"]
    assert status["phase"] == "Canary"
    assert status["observedGeneration"] == 1
    assert status["counts"] == {"matched": 2, "released": 1, "converged": 0, "failed": 0, "offline": 0}
    assert status["message"] == "Waiting for canary edge-1: has not reported on this revision yet"
    assert {each["type"]: each["status"] for each in status["conditions"]}["TargetsFrozen"] == "True"
    assert [(each["device"], each["state"]) for each in status["targets"]] == [
        ("edge-1", "released"),
        ("edge-2", "held"),
    ]


def test_the_list_says_the_same_as_the_object(viewer: Rest, world: World) -> None:
    world.device("edge-1", canary=True)
    world.rollout()
    (listed,), one = viewer.get("deployments/")["results"], viewer.get(API)
    assert listed["metadata"] == one["metadata"]
    assert listed["spec"] == one["spec"]
    assert listed["status"].items() <= one["status"].items()


def test_the_list_is_filtered_and_paged(viewer: Rest, world: World) -> None:
    world.device("edge-1")
    world.rollout(world.manifest("api", labels={"team": "imaging"}))
    world.apply({**world.manifest("web"), "metadata": {"name": "web", "namespace": "shop"}})
    assert viewer.names("deployments/") == ["api", "web"]
    assert viewer.names("deployments/", namespace="shop") == ["web"]
    assert viewer.names("deployments/", phase=["Releasing"]) == ["api"]
    assert viewer.names("deployments/", phase=["Releasing", "Pending"]) == ["api", "web"]
    assert viewer.names("deployments/", search="WE") == ["web"]
    assert viewer.names("deployments/", selector="team in (imaging,other)") == ["api"]
    assert viewer.names("deployments/", selector="!team") == ["web"]
    assert viewer.names("deployments/", page=2, pageSize=1) == ["web"]
    assert viewer.get("deployments/", pageSize=1)["count"] == 2


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"phase": "Sleeping"}, "Sleeping"),
        ({"selector": "a=b c"}, "no part of a selector"),
        ({"selector": "a in (b"}, "no part of a selector"),
        ({"namspace": "shop"}, "unknown parameter 'namspace'; allowed: namespace, phase, search, selector"),
        ({"search": "\x00"}, "Null characters"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(viewer: Rest, query: dict[str, str], words: str) -> None:
    answer = viewer.call("GET", "deployments/", **query)
    assert words in problem(answer, 422)["detail"]


@pytest.mark.parametrize("path", ["namespaces/default/deployments/none/", "namespaces/x/deployments/a%00b/"])
def test_what_does_not_exist_is_not_found(viewer: Rest, path: str) -> None:
    problem(viewer.call("GET", path), 404)


def test_targets_are_listed_with_why_and_where_they_stand(viewer: Rest, world: World) -> None:
    world.device("edge-1", canary=True)
    off = world.device("edge-2")
    deployment = world.rollout()
    world.says(world.device("edge-9"), deployment, "converged")
    world.goes(off, Connectivity.OFFLINE)
    first, second = viewer.get(f"{API}targets/")["results"]
    assert (first["device"], first["canary"], first["state"]) == ("edge-1", True, "released")
    assert "role=analyzer" in first["reason"]
    assert "lab" in first["reason"]
    assert (second["device"], second["connectivity"], second["message"]) == (
        "edge-2",
        "offline",
        "waits for the canaries",
    )
    found = viewer.get(f"{API}targets/", state="held")["results"]
    assert [each["device"] for each in found] == ["edge-2"]
    found = viewer.get(f"{API}targets/", connectivity="online")["results"]
    assert [each["device"] for each in found] == ["edge-1"]


def test_revisions_have_the_history_of_their_phases(operator: Rest, world: World) -> None:
    world.device("edge-1", canary=True)
    world.rollout()
    operator.call("POST", f"{API}retarget/")
    newest, first = operator.get(f"{API}revisions/")["results"]
    assert (newest["generation"], newest["phase"], newest["createdBy"]) == (2, "Pending", "operator")
    assert [each["target"] for each in first["history"]] == ["Canary", "Superseded"]
    assert first["specHash"] == newest["specHash"]


def test_the_manifest_makes_the_same_revision_again(operator: Rest, world: World) -> None:
    world.rollout()
    answer = operator.call("GET", f"{API}manifest/")
    assert answer.headers["Content-Type"] == "application/yaml; charset=utf-8"
    assert yaml.safe_load(answer.content)["metadata"]["name"] == "api"
    assert operator.apply(answer.content).json()["results"][0]["outcome"] == "unchanged"


@pytest.mark.clause("DEP-10")
def test_retarget_freezes_anew(operator: Rest, world: World) -> None:
    world.device("edge-1")
    deployment = world.rollout()
    world.device("edge-2")
    answer = operator.call("POST", f"{API}retarget/")
    assert answer.json()["metadata"]["generation"] == 2
    world.evaluate(deployment)
    assert set(world.states(deployment)) == {"edge-1", "edge-2"}


@pytest.mark.clause("DEP-17")
def test_an_ended_rollout_says_who_ended_it(operator: Rest, world: World) -> None:
    world.device("edge-1", canary=True)
    world.rollout()
    status = operator.call("POST", f"{API}end/").json()["status"]
    assert status["phase"] == "Cancelled"
    assert status["message"].startswith("Ended by operator")


@pytest.mark.clause("DEP-14")
def test_deleting_waits_for_the_devices_and_says_so(operator: Rest, world: World) -> None:
    world.goes(world.device("edge-1"), Connectivity.OFFLINE)
    world.rollout()
    answer = operator.call("DELETE", API)
    assert answer.status_code == 202
    assert answer.json()["status"]["phase"] == "Deleting"
    assert answer.json()["status"]["message"].startswith("Waiting for edge-1 to remove its containers")
    assert operator.names("deployments/", phase="Deleting") == ["api"]
    assert operator.call("DELETE", API).status_code == 202
    problem(operator.call("POST", f"{API}retarget/"), 409)
    problem(operator.call("POST", f"{API}end/"), 409)


@pytest.mark.clause("DEP-14")
def test_devices_that_will_not_come_back_are_given_up_one_by_one(operator: Rest, world: World) -> None:
    world.devices(["edge-1", "edge-2"])
    world.rollout()
    refused = problem(operator.call("POST", f"{API}forget-device/", {"device": "edge-1"}), 409)
    assert "is not being deleted" in refused["detail"]
    operator.call("DELETE", API)
    problem(operator.call("POST", f"{API}forget-device/", {"device": "edge-9"}), 404)
    problem(operator.call("POST", f"{API}forget-device/", {"devise": "edge-1"}), 422)
    left = operator.call("POST", f"{API}forget-device/", {"device": "edge-1"})
    assert left.status_code == 200
    assert left.json()["status"]["message"].startswith("Waiting for edge-2 to remove")
    assert operator.call("POST", f"{API}forget-device/", {"device": "edge-2"}).status_code == 204
    problem(operator.call("POST", f"{API}forget-device/", {"device": "edge-2"}), 404)


def test_deleting_what_no_device_has_is_done_at_once(operator: Rest, world: World) -> None:
    world.rollout()
    assert operator.call("DELETE", API).status_code == 204
    assert not Deployment.objects.exists()


def test_what_a_device_has_to_run(viewer: Rest, world: World) -> None:
    device = world.device("edge-1")
    deployment = world.rollout()
    world.says(device, deployment, "failed", "image not found")
    world.drain()
    world.evaluate(deployment)
    (row,) = viewer.get("devices/edge-1/deployments/")["results"]
    assert row == {
        "deployment": "default/api",
        "wanted": "run",
        "targetState": "failed",
        "observedState": "failed",
        "observedRevision": 1,
        "images": {"api": "sha256:1"},
        "message": "image not found",
    }
    assert viewer.get(API)["status"]["phase"] == Phase.FAILED
