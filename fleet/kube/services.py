"""Bring the fleet to what the cluster says, and tell the cluster how it went (K8S-2, K8S-3).

Level-triggered: a pass looks at everything and repairs, so nothing depends on having seen a change.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import transaction

from fleet.core import clock, kinds
from fleet.core.door import ManifestInvalid, admit
from fleet.core.errors import Conflict, Denied
from fleet.core.jobs import each
from fleet.kube.crds import KINDS, Definition
from fleet.kube.models import ClusterObject
from fleet.kube.policy import status_of
from rollouts.api.forms import Status as DeploymentStatus
from rollouts.models import Deployment
from rollouts.selectors import deployment_status
from rollouts.services import deployment_delete
from tasks.api.forms import TaskStatus
from tasks.models import Kind as TaskKind
from tasks.models import TaskRun
from tasks.selectors import run_status
from tasks.services import taskrun_delete

if TYPE_CHECKING:
    from fleet.kube.client import Cluster, Object

#: What kubectl notes for itself; it is the manifest once more.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
CLASH = "NameClash"
ACCEPTED = ("", "")


@dataclass(frozen=True, slots=True)
class Local:
    """How objects of one kind are found, shown and removed here."""

    find: Callable[[str, str], Any]
    show: Callable[[Any], dict[str, Any]]
    remove: Callable[[Any], None]


LOCAL: dict[str, Local] = {
    "Deployment": Local(
        find=lambda namespace, name: Deployment.objects.filter(namespace=namespace, name=name).first(),
        show=lambda deployment: dict(DeploymentStatus(deployment_status(deployment)).data),
        remove=lambda deployment: deployment_delete(deployment=deployment, actor=None),
    ),
    "TaskRun": Local(
        find=lambda namespace, name: TaskRun.objects.filter(
            kind=TaskKind.TASK_RUN, namespace=namespace, name=name, deleted_at=None
        ).first(),
        show=lambda run: dict(TaskStatus(run_status(run)).data),
        remove=lambda run: taskrun_delete(run=run, actor=None),
    ),
}


@dataclass(frozen=True, slots=True)
class _Found:
    """An object with all that taking it on needs. Only its name goes into logs: a spec may hold what is secret."""

    cluster: Cluster
    kind: Definition
    item: Object

    def __repr__(self) -> str:
        return f"{self.kind.kind} {'/'.join(_key(self.item).values())}"


def cluster_sync(*, cluster: Cluster) -> int:
    """One pass over all kinds; how many objects failed, each of which is in the log and tried again.

    Raises:
        ApiException: a list could not be read. Nothing is taken for deleted then.
    """
    failures = 0
    for kind in KINDS:
        if kind.kind in LOCAL:
            items = cluster.objects(kind)
            failures += each([_Found(cluster, kind, item) for item in items], _sync)
            failures += each(_gone(kind, items), object_forget)
    return failures


def _sync(found: _Found) -> None:
    object_sync(cluster=found.cluster, kind=found.kind, item=found.item)


def object_sync(*, cluster: Cluster, kind: Definition, item: Object) -> None:
    """Take on one object of the cluster, or undo it when it is deleted; its status is written when it changed."""
    if item["metadata"].get("deletionTimestamp"):
        _undo(cluster, kind, item)
        return
    refusal = _take(cluster, kind, item)
    owned = _owned(kind, item)
    local = _find(kind, item) if owned else None
    _tell(cluster, kind, item, local, refusal)


def object_forget(owned: ClusterObject) -> None:
    """The object is gone from the cluster, whatever became of its finalizer: so it goes here."""
    local = LOCAL[owned.kind].find(owned.namespace, owned.name)
    if local is not None:
        LOCAL[owned.kind].remove(local)
    if LOCAL[owned.kind].find(owned.namespace, owned.name) is None:
        owned.delete()


def _take(cluster: Cluster, kind: Definition, item: Object) -> tuple[str, str]:
    """Apply an object's manifest; reason and sentence when it is refused."""
    owned = _owned(kind, item)
    if owned is None and _find(kind, item) is not None:
        return CLASH, _clash(kind, item)
    if owned is not None and owned.uid != item["metadata"]["uid"]:
        object_forget(owned)
        return "Replacing", "An object of the same name was deleted, and is being removed first"
    try:
        (manifest,) = admit(json.dumps(_manifest(item)))
        cluster.hold(kind, item)
        with transaction.atomic():
            if owned is None:
                ClusterObject(kind=kind.kind, **_key(item), uid=item["metadata"]["uid"]).save()
            kinds.manifests_apply(manifests=[manifest], actor=None)
    except ManifestInvalid as error:
        return "Invalid", str(error)
    except (Conflict, Denied) as error:
        return type(error).__name__, str(error)
    return ACCEPTED


def _undo(cluster: Cluster, kind: Definition, item: Object) -> None:
    owned = _owned(kind, item)
    if owned is not None:
        object_forget(owned)
    local = _find(kind, item) if _owned(kind, item) else None
    if local is None:
        cluster.let_go(kind, item)
    else:
        _tell(cluster, kind, item, local, ACCEPTED)


def _tell(cluster: Cluster, kind: Definition, item: Object, local: Any, refusal: tuple[str, str]) -> None:
    shown = LOCAL[kind.kind].show(local) if local is not None else {}
    plain = json.loads(json.dumps(shown))
    status = status_of(plain, item, refusal=refusal, now=clock.now())
    if status != item.get("status"):
        cluster.write_status(kind, item, status)


def _manifest(item: Object) -> dict[str, Any]:
    """The object as a person wrote it: without what the server added, with every field that nobody knows."""
    metadata = item["metadata"]
    notes = {key: text for key, text in (metadata.get("annotations") or {}).items() if key != LAST_APPLIED}
    kept = {"labels": metadata.get("labels") or {}, "annotations": notes}
    return {**{key: item[key] for key in item if key not in ("metadata", "status")}, "metadata": {**_key(item), **kept}}


def _gone(kind: Definition, items: list[Object]) -> list[ClusterObject]:
    there = {(item["metadata"]["namespace"], item["metadata"]["name"]) for item in items}
    owned = ClusterObject.objects.filter(kind=kind.kind)
    return [each for each in owned if (each.namespace, each.name) not in there]


def _clash(kind: Definition, item: Object) -> str:
    name = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
    return (
        f"{kind.kind} {name} exists already and was not made in the cluster; delete it there with fleetctl delete, or "
        "give this one another name"
    )


def _key(item: Object) -> dict[str, str]:
    return {"namespace": item["metadata"]["namespace"], "name": item["metadata"]["name"]}


def _owned(kind: Definition, item: Object) -> ClusterObject | None:
    return ClusterObject.objects.filter(kind=kind.kind, **_key(item)).first()


def _find(kind: Definition, item: Object) -> Any:
    return LOCAL[kind.kind].find(*_key(item).values())
