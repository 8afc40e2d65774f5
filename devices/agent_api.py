"""What devices call. Plain functions without DRF: the idle poll is what the whole system does most.

A poll is one indexed read and no write; a report is one read and one INSERT, acknowledged after its commit (OPS-2).
"""

from __future__ import annotations

import re
from typing import Any

from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse

from agent.wire import messages
from devices import policy
from devices.agent_views import agent_view, body_of, json_answer, token_hash, unknown_credential
from devices.models import Credential, DesiredItem
from devices.polling import Head, head_of, listed_for
from devices.services.enrolment import device_enrol
from devices.services.mailbox import inbox_put, inbox_unread
from devices.services.reports import FACTS_KIND, SelfPortrait
from fleet.core.errors import Busy, NotFound

#: The kind of inbox rows that rollouts drain.
DEPLOYMENTS_KIND = "deployments"
#: The kind of inbox rows that upgrades drain; a usual report has none.
ATTEMPTS_KIND = "attempts"
MAX_ENROL_BYTES = 4096
#: Rows of the inbox above which reports are put off, so that it can't fill the disk while no worker runs (case E6).
#: A device loses nothing by it: its next report is a whole snapshot again.
MAX_UNREAD = 200_000
HASH = re.compile("[a-f0-9]{64}")


@agent_view("POST")
def enroll(request: HttpRequest) -> HttpResponse:
    """Exchange an enrolment token for a credential (DEV-1)."""
    return json_answer(device_enrol(request=body_of(request, messages.EnrolRequest, MAX_ENROL_BYTES)), status=201)


@agent_view("GET")
def desired(request: HttpRequest) -> HttpResponse:
    """The device's desired state, or 304 when it has this version already."""
    head = _poll(request)
    if head.etag in request.META.get("HTTP_IF_NONE_MATCH", ""):  # a proxy may have put W/ before it
        response = HttpResponse(status=304)
    else:
        response = json_answer(_desired_state(head))
    response["ETag"] = head.etag
    response["Cache-Control"] = "private, no-cache"
    return response


@agent_view("GET")
def desired_document(request: HttpRequest, hash: str) -> HttpResponse:
    """A document by its hash, if one of the device's own items refers to it (DEV-3)."""
    items = DesiredItem.objects.filter(document_id=hash, device__credentials__token_hash=token_hash(request))
    # PostgreSQL takes no NUL, so what can't be a hash is not looked up.
    body = items.values_list("document__body", flat=True).first() if HASH.fullmatch(hash) else None
    if body is None:
        _poll(request)  # tells an unknown credential from an unknown document
        raise NotFound("no item of this device has a document with this hash")
    response = HttpResponse(bytes(body), content_type="application/json")
    response["ETag"] = f'"{hash}"'
    response["Cache-Control"] = "private, max-age=31536000, immutable"
    return response


@agent_view("POST")
def report(request: HttpRequest) -> HttpResponse:
    """Put a report into the inbox; the answer says that it is committed."""
    sender = (
        Credential.objects.filter(token_hash=token_hash(request))
        .values_list("device_id", "device__heartbeat__sequence", "device__desiredhead__epoch", inbox_unread())
        .first()
    )
    if sender is None:
        raise unknown_credential()
    device_id, taken_in, epoch, unread = sender
    if unread is not None and unread >= MAX_UNREAD:
        raise Busy(f"{unread} reports wait to be read; keep yours and send it later (are workers running?)")
    told = body_of(request, messages.Report, messages.MAX_REPORT_BYTES)
    portrait = SelfPortrait(facts=told.facts, problems=told.problems)
    parts: dict[str, Any] = {FACTS_KIND: portrait}
    if told.epoch >= (epoch or 1):
        # Else it speaks of revisions from before a restore, whose numbers are others' by now (AGT-9).
        parts[DEPLOYMENTS_KIND] = told.deployments
    if told.attempts:
        parts[ATTEMPTS_KIND] = told.attempts
    try:
        inbox_put(device_id=device_id, sequence=told.sequence, parts=parts)
    except IntegrityError:  # the device was forgotten after the first read
        raise unknown_credential() from None
    notices = policy.sift(told.facts.labels).notices
    return json_answer(messages.ReportReply(sequence=told.sequence, resume_after=taken_in or 0, notices=notices))


def _poll(request: HttpRequest) -> Head:
    head = head_of(token_hash(request))
    if head is None:
        raise unknown_credential()
    return head


def _desired_state(head: Head) -> messages.DesiredState:
    """The whole list under the version that was read before it.

    In this order a release between the two reads shows newer items under an older version, and the device asks again;
    in the other order it would take the old list for the new one.
    """
    listed = listed_for(head.device_id)
    if listed is None:  # the device was forgotten after the first read
        raise unknown_credential()
    return messages.DesiredState(
        device=listed.name, uid=listed.uid, epoch=head.epoch, version=head.version, items=listed.items
    )
