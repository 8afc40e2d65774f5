"""The abstract target: one device in a frozen set, whatever is rolled out to it.

Used by rollouts today, by task runs and agent upgrades next. The concrete model adds the foreign keys to its owner
(the revision, the run) and to the device.
"""

from __future__ import annotations

from django.db import models
from django_fsm import FSMField


class TargetState(models.TextChoices):
    """Where a target stands; see :data:`ARROWS`."""

    HELD = "held", "waiting for canaries"
    RELEASED = "released", "released"
    CONVERGED = "converged", "converged"
    FAILED = "failed", "failed"
    ENDED = "ended", "never released"

    @property
    def colour(self) -> str:
        """The badge's colour in the admin."""
        return _COLOURS[self]


_COLOURS = {
    TargetState.HELD: "default",
    TargetState.RELEASED: "info",
    TargetState.CONVERGED: "success",
    TargetState.FAILED: "danger",
    TargetState.ENDED: "default",
}

#: Which states may become which. Targets move by thousands, so no transition method is called on each; the bulk
#: services filter on these sources instead, and docs/reference/states.md is drawn from them.
ARROWS: dict[TargetState, tuple[TargetState, ...]] = {
    TargetState.RELEASED: (TargetState.HELD, TargetState.CONVERGED),
    TargetState.CONVERGED: (TargetState.RELEASED, TargetState.FAILED),
    TargetState.FAILED: (TargetState.HELD, TargetState.RELEASED, TargetState.CONVERGED),
    TargetState.ENDED: (TargetState.HELD,),
}


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
