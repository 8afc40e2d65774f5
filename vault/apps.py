from django.apps import AppConfig


class VaultConfig(AppConfig):
    name = "vault"
    verbose_name = "Secrets"

    def ready(self) -> None:
        from vault import checks  # noqa: F401, PLC0415  (registers them)
