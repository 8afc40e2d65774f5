from django.apps import AppConfig


class FleetConfig(AppConfig):
    """The roof: what has to know all apps."""

    name = "fleet"

    def ready(self) -> None:
        # Every process that may ring a bell has to know the broker, not only workers.
        import fleet.celery  # noqa: F401, PLC0415
