"""The control plane against a real API server, with exactly the rights that its manifests give it (K8S-2, 3, 6, 7)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from fleet.core.door import admit
from fleet.kube.client import FINALIZER
from fleet.kube.client import Cluster as Client
from fleet.kube.crds import KINDS
from fleet.kube.models import ClusterObject
from fleet.kube.services import cluster_sync
from harness.cluster.server import Account, Cluster
from harness.waiting import wait_until
from rollouts.models import Deployment, Revision
from rollouts.services import deployment_apply, revision_evaluate
from tasks.models import TaskRun
from tests.cluster.test_definitions import RUN, printed_manifest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def client(cluster: Cluster, control_plane_account: Account) -> Client:
    return Client(str(cluster.kubeconfig(control_plane_account)))


def conditions(stored: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["message"]) for each in stored["status"]["conditions"]}


@pytest.mark.clause("K8S-2")
def test_what_is_applied_becomes_a_rollout_and_its_sentence_comes_back(cluster: Cluster, client: Client) -> None:
    kubectl = cluster.kubectl()
    kubectl.apply(printed_manifest())
    assert cluster_sync(cluster=client) == 0
    revision_evaluate(revision_id=Revision.objects.get().pk)
    assert cluster_sync(cluster=client) == 0
    stored = kubectl.get("fleetdep", "analysis-api")
    assert Deployment.objects.get().namespace == "default"
    assert stored["metadata"]["finalizers"] == [FINALIZER]
    assert stored["status"]["phase"] == "Pending"
    assert stored["status"]["observedGeneration"] == stored["metadata"]["generation"] == 1
    assert conditions(stored)["Accepted"][0] == "True"
    assert conditions(stored)["Ready"] == ("False", Revision.objects.get().message)
    assert Revision.objects.get().message in kubectl("get", "fleetdep")
    kubectl("wait", "fleetdep/analysis-api", "--for=condition=Progressing", "--timeout=10s")


@pytest.mark.clause("K8S-2")
def test_a_pass_that_finds_no_change_writes_nothing(cluster: Cluster, client: Client) -> None:
    kubectl = cluster.kubectl()
    kubectl.apply(printed_manifest(), RUN)
    for _ in range(2):  # the first pass also adds the finalizer, which is a version of its own
        cluster_sync(cluster=client)
    before = [kubectl.get(kind, name)["metadata"]["resourceVersion"] for kind, name in BOTH]
    assert cluster_sync(cluster=client) == 0
    assert [kubectl.get(kind, name)["metadata"]["resourceVersion"] for kind, name in BOTH] == before
    assert Revision.objects.count() == 1


BOTH = (("fleetdep", "analysis-api"), ("fleettask", "upgrade-device-1"))


@pytest.mark.clause("K8S-2")
def test_a_changed_spec_is_a_new_revision_and_metadata_is_none(cluster: Cluster, client: Client) -> None:
    kubectl = cluster.kubectl()
    kubectl.apply(printed_manifest())
    cluster_sync(cluster=client)
    kubectl("label", "fleetdep", "analysis-api", "team=a")
    cluster_sync(cluster=client)
    assert Deployment.objects.get().generation == 1
    kubectl("patch", "fleetdep", "analysis-api", "--type=merge", "-p", '{"spec": {"allowedGroups": ["lab", "b"]}}')
    cluster_sync(cluster=client)
    assert Deployment.objects.get().generation == 2
    assert kubectl.get("fleetdep", "analysis-api")["status"]["observedGeneration"] == 2


@pytest.mark.clause("K8S-7")
def test_packages_of_a_caller_start_nothing_and_it_says_why(cluster: Cluster, client: Client) -> None:
    kubectl = cluster.kubectl()
    run = {**RUN, "spec": {**RUN["spec"], "systemUpgradeV1": {"packages": ["x"]}}}
    kubectl("create", "--validate=false", "-f", "-", stdin=json.dumps(run))
    assert cluster_sync(cluster=client) == 0
    assert not TaskRun.objects.exists()
    stored = kubectl.get("fleettask", "upgrade-device-1")
    status, sentence = conditions(stored)["Accepted"]
    assert status == "False"
    assert sentence.startswith("spec.systemUpgradeV1.packages: is not taken: the upgrade is fixed")
    assert "callers cannot supply packages" in kubectl("get", "fleettask")


@pytest.mark.clause("K8S-3")
def test_a_deleted_object_ends_when_its_removal_is_proven(cluster: Cluster, client: Client) -> None:
    kubectl = cluster.kubectl()
    kubectl.apply(printed_manifest(), RUN)
    cluster_sync(cluster=client)
    kubectl("delete", "fleetdep", "analysis-api", "--wait=false")
    assert kubectl.get("fleetdep", "analysis-api")["metadata"]["deletionTimestamp"]
    kubectl("delete", "fleettask", "upgrade-device-1", "--wait=false")
    assert cluster_sync(cluster=client) == 0
    assert kubectl.run("get", "fleetdep", "analysis-api").returncode == 1
    assert not Deployment.objects.exists()
    assert not TaskRun.objects.filter(deleted_at=None).exists()
    assert not ClusterObject.objects.exists()


@pytest.mark.clause("K8S-2")
def test_an_object_that_went_while_nobody_looked_goes_here_too(cluster: Cluster, client: Client) -> None:
    """Its finalizer was removed by hand."""
    kubectl = cluster.kubectl()
    kubectl.apply(printed_manifest())
    cluster_sync(cluster=client)
    kubectl("patch", "fleetdep", "analysis-api", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    kubectl("delete", "fleetdep", "analysis-api")
    assert cluster_sync(cluster=client) == 0
    assert not Deployment.objects.exists()


@pytest.mark.clause("K8S-2")
def test_a_local_object_of_the_same_name_is_left_alone(cluster: Cluster, client: Client) -> None:
    local = {**printed_manifest(), "spec": {**printed_manifest()["spec"], "allowedGroups": ["other"]}}
    (manifest,) = admit(json.dumps(local))
    deployment_apply(manifest=manifest, actor=None)
    kubectl = cluster.kubectl()
    kubectl.apply(printed_manifest())
    assert cluster_sync(cluster=client) == 0
    assert Deployment.objects.get().generation == 1
    status, sentence = conditions(kubectl.get("fleetdep", "analysis-api"))["Accepted"]
    assert (status, sentence.partition(";")[0]) == (
        "False",
        "Deployment default/analysis-api exists already and was not made in the cluster",
    )
    kubectl("delete", "fleetdep", "analysis-api")
    cluster_sync(cluster=client)
    assert Deployment.objects.exists()


@pytest.mark.clause("K8S-2")
def test_what_is_changed_here_on_an_object_of_the_cluster_is_changed_back(cluster: Cluster, client: Client) -> None:
    cluster.kubectl().apply(printed_manifest())
    cluster_sync(cluster=client)
    (manifest,) = admit(json.dumps({**printed_manifest(), "spec": {**printed_manifest()["spec"], "allowedGroups": []}}))
    deployment_apply(manifest=manifest, actor=None)
    assert "allowedGroups" not in Revision.objects.first().spec
    assert cluster_sync(cluster=client) == 0
    assert Revision.objects.first().spec["allowedGroups"] == ["lab"]


@pytest.fixture
def without_rights(cluster: Cluster, client: Client) -> Iterator[Callable[[], object]]:
    """Takes the control plane's rights away, until the end of the test."""
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/harmony-fleet"
    rules = cluster.ask("GET", path)["rules"]

    def change(to: list[dict[str, Any]]) -> None:
        cluster.ask("PATCH", path, {"rules": to}, kind="application/merge-patch+json")

    def may_list() -> bool:
        try:
            return bool(client.objects(KINDS[0]) is not None)
        except ApiException:
            return False

    def take() -> None:
        change([])
        wait_until(lambda: not may_list(), seconds=30, what="the right is gone")

    yield take
    change(rules)
    wait_until(may_list, seconds=30, what="the right is back")


@pytest.mark.clause("K8S-6")
def test_a_missing_right_is_named_and_nothing_is_taken_for_deleted(
    cluster: Cluster, client: Client, without_rights: Callable[[], object]
) -> None:
    cluster.kubectl().apply(printed_manifest())
    cluster_sync(cluster=client)
    without_rights()
    with pytest.raises(
        ApiException, match=r'cannot list resource .*"deployments.*" in API group .*fleet\.nationtech\.io'
    ):
        cluster_sync(cluster=client)
    assert Deployment.objects.get().life == "active"


@pytest.mark.clause("K8S-2")
def test_a_killed_api_server_costs_a_pass_and_nothing_else(
    new_cluster: Callable[..., Cluster], control_plane_account: Account
) -> None:
    own = new_cluster()
    client = Client(str(own.kubeconfig(control_plane_account)))
    own.kubectl().apply(printed_manifest())
    assert cluster_sync(cluster=client) == 0
    own.kill_api()
    with pytest.raises(HTTPError):
        cluster_sync(cluster=client)
    assert Deployment.objects.get().life == "active"
    own.start_api()
    own.compact()
    own.kubectl().apply(RUN)
    wait_until(lambda: cluster_sync(cluster=client) == 0, seconds=30, what="a pass that goes through")
    assert TaskRun.objects.get().name == "upgrade-device-1"
