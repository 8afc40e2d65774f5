"""A real API server with our CRDs and RBAC, for all tests of the session; `make test-cluster` brings its programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fleet.kube.crds import GROUP, KINDS, VERSION, yaml_files
from harness.cluster.server import Account, Cluster
from harness.waiting import wait_until
from tests.support.needs import cannot, need

SHIPPED = Path(__file__).resolve().parents[2] / "deploy/kubernetes"
#: The control plane as deploy/kubernetes knows it.
NAMESPACE, SERVICE_ACCOUNT = "harmony-fleet", "harmony-fleet"


def install(cluster: Cluster) -> None:
    """What an administrator applies before the control plane starts; of what kustomize has, all but the pods."""
    kubectl = cluster.kubectl()
    kubectl("apply", "-f", str(SHIPPED / "namespace.yaml"))
    kubectl.apply((SHIPPED / "rbac.yaml").read_text(), *yaml_files().values(), namespace=NAMESPACE)
    kinds = {kind.plural for kind in KINDS}
    wait_until(lambda: kinds <= cluster.served(GROUP, VERSION), seconds=60, what="all kinds are served")


@pytest.fixture(scope="session")
def control_plane_account() -> Account:
    """The control plane's service account: it has the rights of our RBAC manifests and no others."""
    return Account.service(NAMESPACE, SERVICE_ACCOUNT)


@pytest.fixture(scope="session")
def server(control_plane_account: Account) -> Iterator[Cluster]:
    """The session's server; tests that stop or restart it take one of their own."""
    if "KUBEBUILDER_ASSETS" not in os.environ:
        cannot("kube-apiserver is not built: run make test-cluster")
    need("kube-apiserver", "etcd", "kubectl")
    with Cluster(control_plane_account) as running:
        install(running)
        yield running


@pytest.fixture
def cluster(server: Cluster) -> Iterator[Cluster]:
    """The session's server without objects of the fleet, before and after."""
    yield server
    for kind in KINDS:
        server.empty(f"/apis/{GROUP}/{VERSION}/{kind.plural}")


@pytest.fixture
def new_cluster(server: Cluster, control_plane_account: Account) -> Iterator[Callable[..., Cluster]]:
    """A server of the test's own, to be killed, restarted, compacted."""
    with ExitStack() as stack:

        def start(*, watch_cache: bool = True) -> Cluster:
            own = stack.enter_context(Cluster(control_plane_account, watch_cache=watch_cache))
            install(own)
            return own

        yield start
