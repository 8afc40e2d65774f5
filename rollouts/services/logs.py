"""The end of a container's log, asked for by a person and answered by the device with its next poll (AGT-16).

A request ends in any case: answered, refused by the device, or expired. Its item is erased then, its row some time
later.
Heads of devices are locked before any request, as before any target.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from agent.wire.messages import LOGS_KIND, MAX_LOG_LINES, LogReply, LogRequestDocument
from devices.models import DesiredItem, Device
from devices.services import mailbox
from fleet.core import audit, clock
from fleet.core.errors import Conflict, Invalid, NotFound
from fleet.core.fsm import locked
from fleet.core.jobs import each
from fleet.targeting import wording
from rollouts.models import Deployment, LogRequest, LogState
from rollouts.selectors.logs import containers_on, holding_devices, log_sources, silence
from rollouts.services.history import KIND

DEFAULT_LINES = 200
#: A device that is online answers within seconds; this long it may be away for a moment.
ANSWER_WITHIN = timedelta(minutes=10)
KEPT_FOR = timedelta(hours=1)
#: Requests that a device has at once: reading logs is work for it.
MOST_OPEN = 4
#: Rows per run of the periodic job, which comes again soon.
BATCH = 500


def logs_request(
    *,
    deployment: Deployment,
    device: Device | None = None,
    container: str = "",
    lines: int = DEFAULT_LINES,
    actor: User | None,
) -> LogRequest:
    """Ask a device for the last lines of a container's log; audited.

    Without ``device`` the only one that has the deployment is asked, without ``container`` the only service.

    Raises:
        Invalid: no such container, no number of lines, or it has to be said which one.
        Conflict: the device does not have the deployment, or has too many open requests.
    """
    if not 1 <= lines <= MAX_LOG_LINES:
        raise Invalid(f"lines: found {lines}; allowed: 1 to {MAX_LOG_LINES}")
    asked = _asked(deployment, device)
    request: LogRequest = LogRequest(
        deployment=deployment,
        device=asked,
        container=_container(deployment, asked, container),
        lines=lines,
        requested_at=clock.now(),
        requested_by=actor.get_username() if actor else "",
    )
    detail = {"device": asked.name, "container": request.container, "lines": lines}
    try:
        with locked(Deployment, deployment.pk):
            _put(request)
            request.save(force_insert=True)
            audit.record(actor=actor, action="logs", kind=KIND, name=str(deployment), detail=detail)
    except (IntegrityError, Deployment.DoesNotExist):
        raise NotFound(f"{asked} was forgotten, or {deployment} has ended, in this moment") from None
    return request


def _asked(deployment: Deployment, device: Device | None) -> Device:
    holding = holding_devices(deployment)
    if device is None:
        found = list(holding.order_by("name")[: wording.NAMED + 1])
        if len(found) == 1:
            return found[0]
        if not found:
            raise Conflict(f"no device has {deployment} yet, so there is no log")
        names = wording.names([each.name for each in found[: wording.NAMED]])
        raise Invalid(f"device: {deployment} is on {holding.count()} devices; say which, such as {names}")
    if not holding.filter(pk=device.pk).exists():
        raise Conflict(f"{device.name} does not have {deployment}, so there is no log of it")
    return device


def _container(deployment: Deployment, device: Device, wanted: str) -> str:
    known = log_sources(deployment)
    if not wanted:
        if len(known.services) == 1:
            return known.services[0]
        raise Invalid(f"container: {deployment} has several; say which: {', '.join(known.containers)}")
    if wanted not in known.containers and wanted not in containers_on(deployment, device):
        raise Invalid(f"container: {deployment} has no {wanted[:80]!r}; allowed: {', '.join(known.containers)}")
    return wanted


def _put(request: LogRequest) -> None:
    document = LogRequestDocument(
        request=str(request.uid),
        deployment=str(request.deployment.uid),
        container=request.container,
        lines=request.lines,
    )
    mailbox.desired_put(
        kind=LOGS_KIND,
        key=str(request.uid),
        document=mailbox.document_put(document),
        device_ids=[request.device_id],
    )
    # Counted under the lock of the device's head, so that two requests at once don't both pass.
    if LogRequest.objects.filter(device_id=request.device_id, state=LogState.WAITING).count() >= MOST_OPEN:
        raise Conflict(
            f"{request.device} has {MOST_OPEN} requests for logs open already; they end by themselves within "
            f"{_minutes(ANSWER_WITHIN)}"
        )


def logs_answer(*, device_id: int, reply: LogReply) -> None:
    """Take in what a device sent; the same answer again changes nothing.

    Raises:
        NotFound: this device was not asked, or not any more, so it need not say it again.
    """
    asked = LogRequest.objects.filter(uid=_uid(reply.request), device_id=device_id).exclude(state=LogState.EXPIRED)
    found = asked.select_related("device").first()
    if found is None:
        raise NotFound("this device is not asked for that log, or not any more")
    with _ended(found) as request:
        if request is not None:
            _take_in(request, reply)


@contextmanager
def _ended(found: LogRequest) -> Iterator[LogRequest | None]:
    """The request under its lock and without its item, or None when somebody ended it meanwhile."""
    with transaction.atomic():
        _erase_item(found)
        with suppress(LogRequest.DoesNotExist), locked(LogRequest, found.pk) as request:
            if request.state == LogState.WAITING:
                yield request
                return
        yield None


def _take_in(request: LogRequest, reply: LogReply) -> None:
    now = clock.now()
    if reply.problem:
        request.note_problem(now)
        request.problem = f"{request.device.name} could not read the log: {_storable(reply.problem)}"
    else:
        request.note_answer(now)
        request.text, request.is_cut = _storable(reply.text), reply.is_cut


def _storable(text: str) -> str:
    """PostgreSQL takes neither NUL nor halves of a surrogate pair."""
    return text.replace("\0", "�").encode("utf-8", "replace").decode()


def _uid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise NotFound("a request is named by a UUID") from None


def logs_tidy() -> None:
    """End what was not answered in time, forget what ended long ago, erase items that nobody waits for."""
    now = clock.now()
    overdue = LogRequest.objects.filter(state=LogState.WAITING, requested_at__lt=now - ANSWER_WITHIN)
    each(list(overdue.select_related("device__heartbeat").order_by("pk")[:BATCH]), _expire)
    LogRequest.objects.exclude(state=LogState.WAITING).filter(ended_at__lt=now - KEPT_FOR).delete()
    _erase_orphans()


def _expire(found: LogRequest) -> None:
    now = clock.now()
    reason = silence(found.device, now) or "it is online; its agent may be too old to send logs"
    with _ended(found) as request:
        if request is not None:
            request.note_expiry(now)
            request.problem = f"{found.device.name} did not answer within {_minutes(ANSWER_WITHIN)}: {reason}"


def logs_drop(deployment: Deployment) -> None:
    """Erase the questions about a deployment that ends; its requests go with its row."""
    for request in LogRequest.objects.filter(deployment=deployment, state=LogState.WAITING).order_by("device_id"):
        _erase_item(request)


def _erase_orphans() -> None:
    """Items whose request is gone or over, whatever way that came about."""
    items = list(DesiredItem.objects.filter(kind=LOGS_KIND).values_list("key", "device_id")[:BATCH])
    waiting = {str(uid) for uid in LogRequest.objects.filter(state=LogState.WAITING).values_list("uid", flat=True)}
    for key, device_id in items:
        if key not in waiting:
            with transaction.atomic():
                mailbox.desired_erase(kind=LOGS_KIND, key=key, device_ids=[device_id])


def _erase_item(request: LogRequest) -> None:
    mailbox.desired_erase(kind=LOGS_KIND, key=str(request.uid), device_ids=[request.device_id])


def _minutes(span: timedelta) -> str:
    return f"{span.total_seconds() / 60:g} min"
