from typing import Any

from django.apps import AppConfig


class RolloutsConfig(AppConfig):
    name = "rollouts"
    verbose_name = "Rollouts"

    def ready(self) -> None:
        from devices.signals import device_forgotten  # noqa: PLC0415  (models have to be loaded)
        from fleet.core import kinds  # noqa: PLC0415
        from rollouts.selectors.secrets import needed_by  # noqa: PLC0415
        from rollouts.services.applying import deployment_apply  # noqa: PLC0415
        from vault import uses  # noqa: PLC0415

        device_forgotten.connect(_look_again, dispatch_uid="rollouts.device_forgotten")
        uses.tell(needed_by)
        kinds.register(
            "Deployment",
            kinds.Kind(
                apply=lambda manifest, actor, dry_run: (
                    deployment_apply(manifest=manifest, actor=actor, dry_run=dry_run).done
                ),
                model="rollouts.deployment",
                permissions=("rollouts.add_deployment", "rollouts.change_deployment"),
            ),
        )


def _look_again(**_: Any) -> None:
    """A forgotten canary fails its rollout, and a removal may have waited for just that device (DEP-12, DEP-14)."""
    from rollouts.services.bells import ring_for_sweep  # noqa: PLC0415  (models have to be loaded)

    ring_for_sweep()
