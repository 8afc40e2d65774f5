from typing import Any

from django.apps import AppConfig


class TasksConfig(AppConfig):
    name = "tasks"
    verbose_name = "Tasks"

    def ready(self) -> None:
        from devices.signals import device_forgotten  # noqa: PLC0415  (models have to be loaded)
        from fleet.core import kinds  # noqa: PLC0415
        from releases import uses  # noqa: PLC0415
        from tasks.selectors.agents import rollouts_of  # noqa: PLC0415
        from tasks.services.applying import taskrun_apply  # noqa: PLC0415
        from tasks.services.schedules import schedule_apply  # noqa: PLC0415

        uses.tell(rollouts_of)
        device_forgotten.connect(_look_again, dispatch_uid="tasks.device_forgotten")
        kinds.register(
            "TaskRun",
            kinds.Kind(
                apply=lambda manifest, actor, dry_run: taskrun_apply(manifest=manifest, actor=actor, dry_run=dry_run),
                model="tasks.taskrun",
                permissions=("tasks.add_taskrun", "tasks.change_taskrun"),
            ),
        )
        kinds.register(
            "AgentRelease",
            kinds.Kind(
                apply=lambda manifest, actor, dry_run: taskrun_apply(manifest=manifest, actor=actor, dry_run=dry_run),
                model="tasks.agentrelease",
                permissions=("tasks.add_agentrelease", "tasks.change_agentrelease"),
            ),
        )
        kinds.register(
            "TaskSchedule",
            kinds.Kind(
                apply=lambda manifest, actor, dry_run: schedule_apply(manifest=manifest, actor=actor, dry_run=dry_run),
                model="tasks.taskschedule",
                permissions=("tasks.add_taskschedule", "tasks.change_taskschedule"),
            ),
        )


def _look_again(**_: Any) -> None:
    """A forgotten device fails its target."""
    from tasks.services.bells import ring_for_sweep  # noqa: PLC0415  (models have to be loaded)

    ring_for_sweep()
