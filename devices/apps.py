from django.apps import AppConfig


class DevicesConfig(AppConfig):
    name = "devices"
    verbose_name = "Devices"

    def ready(self) -> None:
        from devices import readiness  # noqa: PLC0415  (models can be imported now)
        from fleet.core import health  # noqa: PLC0415

        health.register("inbox", readiness.inbox)
