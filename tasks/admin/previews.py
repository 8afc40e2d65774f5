"""What applying a task run or a schedule would do, for the editor."""

from __future__ import annotations

from typing import Any

import msgspec

from agent.wire.manifest import AgentReleaseSpec, TaskRunSpec
from devices.selectors import match
from fleet.core.adminkit.manifests import difference
from fleet.core.adminkit.previews import Preview, add_previewer
from fleet.core.door import Admitted
from fleet.core.kinds import Done
from fleet.core.manifest_text import dump
from tasks import services
from tasks.models import TaskSchedule


def _preview(admitted: Admitted, done: Done, spec: TaskRunSpec | AgentReleaseSpec) -> Preview:
    metadata = admitted.manifest.metadata
    found = match(spec.targetSelector, spec.allowedGroups)
    return Preview(
        f"{metadata.namespace}/{metadata.name}",
        done.outcome,
        done.generation,
        matched=len(found.chosen),
        canaries=sorted(each.device.name for each in found.chosen if each.device.canary),
        obstacle=found.obstacle.message if found.obstacle else "",
    )


def _run(admitted: Admitted, user: Any) -> Preview:
    done = services.taskrun_apply(manifest=admitted, actor=user, dry_run=True)
    return _preview(admitted, done, msgspec.convert(admitted.spec, TaskRunSpec))


def _release(admitted: Admitted, user: Any) -> Preview:
    done = services.taskrun_apply(manifest=admitted, actor=user, dry_run=True)
    return _preview(admitted, done, msgspec.convert(admitted.spec, AgentReleaseSpec))


def _schedule(admitted: Admitted, user: Any) -> Preview:
    done = services.schedule_apply(manifest=admitted, actor=user, dry_run=True)
    result = _preview(admitted, done, msgspec.convert(admitted.spec["template"], TaskRunSpec))
    existing = TaskSchedule.objects.filter(pk=done.pk).first()
    if existing is not None:
        metadata = {"name": existing.name, "namespace": existing.namespace}
        before, after = (dump("TaskSchedule", metadata, spec) for spec in (existing.spec, admitted.spec))
        result.difference = difference(before, after)
    return result


add_previewer("TaskRun", _run)
add_previewer("AgentRelease", _release)
add_previewer("TaskSchedule", _schedule)
