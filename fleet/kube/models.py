"""Which objects live in the cluster; all others are local, and the cluster knows nothing of them (K8S-2)."""

from __future__ import annotations

from django.db import models


class ClusterObject(models.Model):
    """An object of the cluster that was taken on; ``uid`` tells it from a later one of the same name."""

    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "namespace", "name"], name="clusterobject_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
