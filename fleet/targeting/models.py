"""The abstract target: one device in a frozen set, whatever is rolled out to it.

Used by rollouts today, by task runs and agent upgrades next. The concrete model adds the foreign keys to its owner
(the revision, the run) and to the device.
"""

from __future__ import annotations

from django.db import models
from django_fsm import FSMField


class TargetState(models.TextChoices):
    """Where a target stands::

    held ──release──▶ released ◀──▶ converged
      │                  ▲  └────▶ failed ──▶ converged
      └──end──▶ ended    └────────────┘
    """

    HELD = "held", "waiting for canaries"
    RELEASED = "released", "released"
    CONVERGED = "converged", "converged"
    FAILED = "failed", "failed"
    ENDED = "ended", "never released"


#: States in which the device was told.
TOLD = (TargetState.RELEASED, TargetState.CONVERGED, TargetState.FAILED)


class AbstractTarget(models.Model):
    """A frozen target (DEP-10). ``device_name`` and ``device_uid`` survive the device, so that history stays readable
    and a forgotten canary is noticed (DEP-12): the concrete model's ``device`` becomes NULL then."""

    device_name = models.CharField(max_length=63)
    device_uid = models.UUIDField()
    canary = models.BooleanField()
    reason = models.CharField(max_length=1024, help_text="Why the device is in the set: selector and groups.")
    state = FSMField(default=TargetState.HELD, choices=TargetState.choices, protected=True)
    since = models.DateTimeField(help_text="Since when it is in this state.")
    released_at = models.DateTimeField(null=True)
    message = models.TextField(blank=True, help_text="The last error, or what it waits for, in one sentence.")

    class Meta:
        abstract = True
