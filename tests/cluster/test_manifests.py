"""What deploy/ ships for a cluster, on a real API server (K8S-6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from fleet.kube.crds import GROUP
from harness.cluster.server import Account, Cluster

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
PODS = ("web", "waiting", "worker", "beat")
OURS = "harmony-fleet"
CORE, LEASES = "", "coordination.k8s.io"


@pytest.mark.clause("K8S-6")
@pytest.mark.parametrize("folder", ["kubernetes", "example"])
def test_the_server_takes_all_that_is_shipped(cluster: Cluster, folder: str) -> None:
    told = cluster.kubectl()("apply", "--dry-run=server", "-k", str(DEPLOY / folder)).splitlines()
    assert all(line.endswith("(server dry run)") for line in told)
    for name in PODS:
        assert f"deployment.apps/{name} created (server dry run)" in told


def test_no_pod_may_do_more_than_it_needs(cluster: Cluster) -> None:
    """As the cluster's own rule ``restricted`` has it, which the namespace asks for."""
    rendered = cluster.kubectl()("kustomize", str(DEPLOY / "kubernetes"))
    pods = {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]
        for each in yaml.safe_load_all(rendered)
        if each["apiVersion"] == "apps/v1"
    }
    assert set(pods) == set(PODS)
    for pod in pods.values():
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in (*pod["initContainers"], *pod["containers"]):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["limits"]["memory"]
    with_token = {name for name, pod in pods.items() if pod["automountServiceAccountToken"]}
    assert with_token == {"worker"}


class What(NamedTuple):
    """Objects that somebody may have a right to; everywhere when ``namespace`` is empty."""

    group: str
    resource: str
    namespace: str = ""


@pytest.mark.clause("K8S-6")
@pytest.mark.parametrize(
    ("what", "verbs"),
    [
        (What(GROUP, "deployments"), "list patch"),
        (What(GROUP, "taskruns"), "list patch"),
        (What(GROUP, "deployments/status"), "patch"),
        (What(GROUP, "taskruns/status"), "patch"),
        (What(GROUP, "devices"), ""),
        (What(CORE, "events"), ""),
        (What(LEASES, "leases", OURS), ""),
        (What(CORE, "secrets", OURS), ""),
        (What(CORE, "configmaps", OURS), ""),
        (What(CORE, "pods", OURS), ""),
        (What(CORE, "namespaces"), ""),
        (What("apps", "deployments", OURS), ""),
        (What("rbac.authorization.k8s.io", "clusterroles"), ""),
        (What("apiextensions.k8s.io", "customresourcedefinitions"), ""),
    ],
    ids=lambda value: f"{value.resource} in {value.namespace or 'all'}" if isinstance(value, What) else "",
)
def test_the_control_plane_has_the_rights_that_it_needs_and_no_other(
    cluster: Cluster, control_plane_account: Account, what: What, verbs: str
) -> None:
    known = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
    assert {verb for verb in known if _may(cluster, control_plane_account, verb, what)} == set(verbs.split())


def _may(cluster: Cluster, account: Account, verb: str, what: What) -> bool:
    name, _, subresource = what.resource.partition("/")
    attributes = {"group": what.group, "resource": name, "subresource": subresource, "namespace": what.namespace}
    question: dict[str, Any] = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": account.name,
            "groups": list(account.groups),
            "resourceAttributes": {"verb": verb, **attributes},
        },
    }
    answer = cluster.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", question)
    return bool(answer["status"]["allowed"])
