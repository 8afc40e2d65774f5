from django.apps import AppConfig


class ReleasesConfig(AppConfig):
    name = "releases"
    verbose_name = "Shelf"

    def ready(self) -> None:
        from releases import uses  # noqa: PLC0415  (models have to be loaded)
        from releases.selectors import devices_of  # noqa: PLC0415

        uses.tell(devices_of)
