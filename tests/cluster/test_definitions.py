"""The kinds of the fleet on a real API server, as kubectl shows them (K8S-1, K8S-7)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.wire.manifest import API_VERSION
from fleet.kube.crds import GROUP, KINDS, VERSION
from harness.cluster.kubectl import KubectlFailed
from harness.cluster.server import Cluster

MANIFESTS = Path(__file__).resolve().parents[1] / "contract/manifests"
DEVICE: dict[str, Any] = {"apiVersion": API_VERSION, "kind": "Device", "metadata": {"name": "device-1"}, "spec": {}}
RUN: dict[str, Any] = {
    "apiVersion": API_VERSION,
    "kind": "TaskRun",
    "metadata": {"name": "upgrade-device-1"},
    "spec": {
        "allowedGroups": ["production"],
        "targetSelector": {"matchLabels": {"device-id": "device-1"}},
        "deadlineSeconds": 21600,
        "systemUpgradeV1": {},
    },
}
STATUS: dict[str, Any] = {
    "observedGeneration": 1,
    "phase": "Releasing",
    "message": "Waiting for 1 of 2 devices: edge-2 (offline since 05:05 UTC)",
    "counts": {"matched": 2, "released": 2, "converged": 1, "failed": 0, "offline": 1},
    "conditions": [
        {
            "type": "Ready",
            "status": "False",
            "reason": "Releasing",
            "message": "1 of 2 devices have converged",
            "lastTransitionTime": "2026-12-01T05:05:00Z",
            "observedGeneration": 1,
        }
    ],
}


def printed_manifest() -> dict[str, Any]:
    """The manifest of the document, with real digests."""
    manifest: dict[str, Any] = yaml.safe_load((MANIFESTS / "good/as-printed.yaml").read_text())
    return manifest


def write_status(cluster: Cluster, plural: str, name: str, status: dict[str, Any], place: str = "") -> None:
    path = f"/apis/{GROUP}/{VERSION}{place}/{plural}/{name}/status"
    cluster.ask("PATCH", path, {"status": status}, kind="application/merge-patch+json")


@pytest.mark.clause("K8S-1")
def test_the_server_finds_the_schemas_structural(cluster: Cluster) -> None:
    for kind in KINDS:
        found = cluster.ask("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind.name}")
        conditions = {each["type"]: each["status"] for each in found["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}


@pytest.mark.clause("K8S-1", "DEP-1")
def test_the_manifest_of_the_document_is_taken_as_printed(cluster: Cluster) -> None:
    kubectl = cluster.kubectl()
    assert kubectl.apply(printed_manifest()) == "deployment.fleet.nationtech.io/analysis-api created\n"
    assert kubectl.apply(printed_manifest()) == "deployment.fleet.nationtech.io/analysis-api unchanged\n"
    stored = kubectl.get("fleetdep", "analysis-api")
    assert stored["spec"] == printed_manifest()["spec"]  # nothing pruned, no default filled in
    assert stored["metadata"]["generation"] == 1


@pytest.mark.clause("K8S-1")
def test_get_shows_phase_counts_and_the_sentence(cluster: Cluster) -> None:
    kubectl = cluster.kubectl()
    kubectl.apply(printed_manifest(), RUN, DEVICE)
    write_status(cluster, "deployments", "analysis-api", STATUS, "/namespaces/default")
    write_status(cluster, "devices", "device-1", {"connectivity": "online", "agentVersion": "1.2.3"})
    deployments = kubectl("get", "fleetdep").splitlines()
    assert deployments[0].split() == ["NAME", "PHASE", "READY", "DEVICES", "CONVERGED", "FAILED", "MESSAGE", "AGE"]
    assert deployments[1].startswith(
        "analysis-api   Releasing   False   2         1           0        Waiting for 1 of"
    )
    assert kubectl("get", "fleetdev").splitlines()[1].split()[:3] == ["device-1", "online", "1.2.3"]
    wide = kubectl("get", "taskruns", "-o", "wide").splitlines()[0]
    assert {"RELEASED", "DEADLINE"} <= set(wide.split())


@pytest.mark.clause("K8S-1")
def test_one_word_lists_all_kinds(cluster: Cluster) -> None:
    kubectl = cluster.kubectl()
    kubectl.apply(printed_manifest(), RUN, DEVICE)
    assert set(kubectl("get", "fleet", "-o", "name").split()) == {
        "deployment.fleet.nationtech.io/analysis-api",
        "taskrun.fleet.nationtech.io/upgrade-device-1",
        "device.fleet.nationtech.io/device-1",
    }


@pytest.mark.clause("K8S-1")
def test_status_is_a_subresource(cluster: Cluster) -> None:
    """Who applies a manifest writes no status, and who writes status makes no generation."""
    kubectl = cluster.kubectl()
    kubectl.apply({**printed_manifest(), "status": {"phase": "Converged"}})
    write_status(cluster, "deployments", "analysis-api", STATUS, "/namespaces/default")
    stored = kubectl.get("fleetdep", "analysis-api")
    assert stored["status"] == STATUS
    assert stored["metadata"]["generation"] == 1


@pytest.mark.clause("K8S-7")
@pytest.mark.parametrize(
    "spec",
    [{**RUN["spec"], "systemUpgradeV1": {"packages": ["x"]}}, {**RUN["spec"], "command": "rm -rf /"}],
    ids=["in the executor", "beside it"],
)
def test_fields_that_nobody_knows_are_kept(cluster: Cluster, spec: dict[str, Any]) -> None:
    """Emptied in silence, it would be an upgrade that the writer never asked for."""
    kubectl = cluster.kubectl()
    kubectl("create", "--validate=false", "-f", "-", stdin=json.dumps({**RUN, "spec": spec, "note": "x"}))
    stored = kubectl.get("fleettask", "upgrade-device-1")
    assert stored["spec"] == spec
    assert stored["note"] == "x"


@pytest.mark.clause("K8S-1")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"deadlineSeconds": 5}, "spec.deadlineSeconds"),
        ({"deadlineSeconds": "6h"}, "spec.deadlineSeconds"),
        ({"allowedGroups": ["Not A Group"]}, r"spec.allowedGroups"),
        ({"systemUpgradeV1": None}, "spec.systemUpgradeV1"),
        ({"targetSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}, "operator"),
    ],
)
def test_what_no_type_allows_is_refused_by_the_server(cluster: Cluster, changes: dict[str, Any], words: str) -> None:
    refused = cluster.kubectl().run(
        "create", "--validate=false", "-f", "-", stdin=json.dumps({**RUN, "spec": {**RUN["spec"], **changes}})
    )
    assert refused.returncode == 1
    assert 'The TaskRun "upgrade-device-1" is invalid' in refused.stderr
    assert words in refused.stderr


def test_a_device_has_a_name_that_devices_have(cluster: Cluster) -> None:
    with pytest.raises(KubectlFailed, match=r"metadata\.name"):
        cluster.kubectl().apply({**DEVICE, "metadata": {"name": "edge.one"}})
