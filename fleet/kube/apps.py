from django.apps import AppConfig


class KubeConfig(AppConfig):
    """The same fleet through kubectl (K8S); the only place that knows Kubernetes."""

    name = "fleet.kube"
    label = "kube"
    verbose_name = "Kubernetes"
