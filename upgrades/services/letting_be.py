"""What was wanted of devices is taken back where they have not begun it, as when a rollout of agents is stopped."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.db.models import Q

from devices.services import mailbox
from upgrades.models import Attempt, DesiredAgent, Standing, State
from upgrades.services.offering import attempts_withdraw


def agents_let_be(*, device_ids: Collection[int], digests: Collection[str], by: str) -> None:
    """Let these devices keep the agents that they have, where ``by`` wants one of these targets and it is not begun.

    What has begun, what is done, and what somebody else wants stays wanted. A constant number of statements.
    """
    with transaction.atomic():
        ids = sorted(mailbox.heads_lock(device_ids=list(device_ids)))
        own = DesiredAgent.objects.filter(device_id__in=ids, spec_hash__in=digests, set_by=by)
        wanted = own.exclude(state=Standing.CURRENT)
        offered = wanted.filter(attempt__state=State.OFFERED).values("attempt_id")
        attempts_withdraw(attempts=Attempt.objects.filter(pk__in=offered), device_ids=ids)
        not_begun = Q(attempt=None) | Q(attempt__state=State.WITHDRAWN)
        DesiredAgent.objects.filter(pk__in=list(wanted.filter(not_begun).values_list("pk", flat=True))).delete()
