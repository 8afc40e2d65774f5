from django.apps import AppConfig
from django.db.models.signals import post_migrate


class CoreConfig(AppConfig):
    name = "fleet.core"
    label = "core"
    verbose_name = "Operation"

    def ready(self) -> None:
        from fleet.core import roles  # noqa: PLC0415  (receivers are connected when models can be)

        post_migrate.connect(roles.keep_roles, dispatch_uid="fleet.core.roles")
