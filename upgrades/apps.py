from django.apps import AppConfig


class UpgradesConfig(AppConfig):
    name = "upgrades"
    verbose_name = "Upgrades"

    def ready(self) -> None:
        from fleet.core import kinds  # noqa: PLC0415  (models have to be loaded)
        from upgrades.api.forms import show_with_devices  # noqa: PLC0415
        from upgrades.services import device_apply  # noqa: PLC0415

        show_with_devices()
        kinds.register(
            "Device",
            kinds.Kind(
                apply=lambda manifest, actor, dry_run: device_apply(manifest=manifest, actor=actor, dry_run=dry_run),
                model="devices.device",
                permissions=("upgrades.change_desiredagent",),
            ),
        )
