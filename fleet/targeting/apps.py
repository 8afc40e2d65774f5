from django.apps import AppConfig


class TargetingConfig(AppConfig):
    name = "fleet.targeting"
    label = "targeting"
