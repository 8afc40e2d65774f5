"""The API server, as far as we use it. Errors are the client's ``ApiException``; a pass that meets one ends or goes on
with the next object, and the next pass repairs.
"""

from __future__ import annotations

from typing import Any

from kubernetes import config
from kubernetes.client import ApiClient, CustomObjectsApi

from fleet.kube.crds import GROUP, VERSION, Definition

FINALIZER = "fleet.nationtech.io/finalizer"
FIELD_MANAGER = "harmony-fleet"
IN_CLUSTER = "in-cluster"
#: Objects in one answer; a list of thousands comes in pages.
PAGE = 500
REQUEST_SECONDS = 30.0

Object = dict[str, Any]


class Cluster:
    """``kubeconfig``: a file's path, or ``in-cluster`` for the service account of the pod that we run in."""

    def __init__(self, kubeconfig: str) -> None:
        self._api = CustomObjectsApi(_connected(kubeconfig))

    def objects(self, kind: Definition) -> list[Object]:
        """All objects of a kind, of one moment: a list that broke off in the middle raises and is no list."""
        found: list[Object] = []
        token = ""
        while True:
            page: Any = self._api.list_cluster_custom_object(
                GROUP, VERSION, kind.plural, limit=PAGE, _continue=token or None, _request_timeout=REQUEST_SECONDS
            )
            found += page["items"]
            token = page["metadata"].get("continue") or ""
            if not token:
                return found

    def write_status(self, kind: Definition, item: Object, status: dict[str, Any]) -> None:
        """Server-side apply under a name of our own; others' fields stay theirs."""
        metadata = {key: item["metadata"][key] for key in ("name", "namespace")}
        self._api.patch_namespaced_custom_object_status(
            *_address(kind, item),
            {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind.kind, "metadata": metadata, "status": status},
            field_manager=FIELD_MANAGER,
            force=True,
            _content_type="application/apply-patch+yaml",
            _request_timeout=REQUEST_SECONDS,
        )

    def hold(self, kind: Definition, item: Object) -> None:
        """Keep an object that is deleted until its work is undone (K8S-3)."""
        finalizers = item["metadata"].get("finalizers") or []
        if FINALIZER not in finalizers:
            self._set_finalizers(kind, item, [*finalizers, FINALIZER])

    def let_go(self, kind: Definition, item: Object) -> None:
        """Let a deleted object end."""
        finalizers = item["metadata"].get("finalizers") or []
        if FINALIZER in finalizers:
            self._set_finalizers(kind, item, [each for each in finalizers if each != FINALIZER])

    def _set_finalizers(self, kind: Definition, item: Object, finalizers: list[str]) -> None:
        """Only on the version that was read: another's finalizer that came meanwhile must not get lost."""
        metadata = {"finalizers": finalizers, "resourceVersion": item["metadata"]["resourceVersion"]}
        self._api.patch_namespaced_custom_object(
            *_address(kind, item),
            {"metadata": metadata},
            field_manager=FIELD_MANAGER,
            _content_type="application/merge-patch+json",
            _request_timeout=REQUEST_SECONDS,
        )


def _connected(kubeconfig: str) -> ApiClient:
    if kubeconfig == IN_CLUSTER:
        config.load_incluster_config()  # type: ignore[no-untyped-call]  # this part of the client has no types
        return ApiClient()
    client: ApiClient = config.new_client_from_config(kubeconfig)  # type: ignore[no-untyped-call]  # as above
    return client


def _address(kind: Definition, item: Object) -> tuple[str, str, str, str, str]:
    return GROUP, VERSION, item["metadata"]["namespace"], kind.plural, item["metadata"]["name"]
