"""What devices call. Plain functions without DRF: the idle poll is what the whole system does most.

A poll is one indexed read and no write; a report is one read and one INSERT, acknowledged after its commit (OPS-2).
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from django.conf import settings
from django.db import IntegrityError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from agent.wire import canonical, messages
from devices import policy
from devices.models import Credential, DesiredItem, Device
from devices.polling import Head, head_of
from devices.services.enrolment import device_enrol
from devices.services.mailbox import inbox_put, inbox_unread
from devices.services.reports import FACTS_KIND, SelfPortrait
from devices.services.tokens import hash_of
from fleet.core.errors import Busy, FleetError, Invalid, NotFound, TooLarge, Unauthorised
from fleet.core.problems import CONTENT_TYPE, document

log = logging.getLogger(__name__)
View = Callable[..., HttpResponse]
Body = TypeVar("Body", bound=messages.Message)

#: The kind of inbox rows that rollouts drain.
DEPLOYMENTS_KIND = "deployments"
MAX_ENROL_BYTES = 4096
#: Rows of the inbox above which reports are put off, so that it can't fill the disk while no worker runs (case E6).
#: A device loses nothing by it: its next report is a whole snapshot again.
MAX_UNREAD = 200_000
SCHEME = "Bearer "
HASH = re.compile("[a-f0-9]{64}")


def agent_view(method: str) -> Callable[[View], View]:
    """A view for one method whose refusals are problem documents."""

    def decorate(view: View) -> View:
        @csrf_exempt
        @functools.wraps(view)
        def guarded(request: HttpRequest, **arguments: str) -> HttpResponse:
            if request.method != method:
                response = _problem(405, f"{request.method} is not known here; allowed: {method}")
                response["Allow"] = method
                return response
            try:
                return view(request, **arguments)
            except FleetError as error:
                return _refusal(error)
            except (OperationalError, InterfaceError):
                log.exception("the database does not answer")
                return _refusal(Busy("the control plane's database does not answer at this moment; try again later"))

        return guarded

    return decorate


@agent_view("POST")
def enroll(request: HttpRequest) -> HttpResponse:
    """Exchange an enrolment token for a credential (DEV-1)."""
    return _json(device_enrol(request=_body(request, messages.EnrolRequest, MAX_ENROL_BYTES)), status=201)


@agent_view("GET")
def desired(request: HttpRequest) -> HttpResponse:
    """The device's desired state, or 304 when it has this version already."""
    head = _poll(request)
    if head.etag in request.META.get("HTTP_IF_NONE_MATCH", ""):  # a proxy may have put W/ before it
        response = HttpResponse(status=304)
    else:
        response = _json(_desired_state(head))
    response["ETag"] = head.etag
    response["Cache-Control"] = "private, no-cache"
    return response


@agent_view("GET")
def desired_document(request: HttpRequest, hash: str) -> HttpResponse:
    """A document by its hash, if one of the device's own items refers to it (DEV-3)."""
    items = DesiredItem.objects.filter(document_id=hash, device__credentials__token_hash=_token_hash(request))
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
        Credential.objects.filter(token_hash=_token_hash(request))
        .values_list("device_id", "device__heartbeat__sequence", inbox_unread())
        .first()
    )
    if sender is None:
        raise _unknown()
    device_id, taken_in, unread = sender
    if unread is not None and unread >= MAX_UNREAD:
        raise Busy(f"{unread} reports wait to be read; keep yours and send it later (are workers running?)")
    told = _body(request, messages.Report, messages.MAX_REPORT_BYTES)
    portrait = SelfPortrait(facts=told.facts, problems=told.problems)
    parts = {DEPLOYMENTS_KIND: told.deployments, FACTS_KIND: portrait}
    try:
        inbox_put(device_id=device_id, sequence=told.sequence, parts=parts)
    except IntegrityError:  # the device was forgotten after the first read
        raise _unknown() from None
    notices = policy.sift(told.facts.labels).notices
    return _json(messages.ReportReply(sequence=told.sequence, resume_after=taken_in or 0, notices=notices))


def _poll(request: HttpRequest) -> Head:
    head = head_of(_token_hash(request))
    if head is None:
        raise _unknown()
    return head


def _desired_state(head: Head) -> messages.DesiredState:
    """The whole list under the version that was read before it.

    In this order a release between the two reads shows newer items under an older version, and the device asks again;
    in the other order it would take the old list for the new one.
    """
    name, uid = Device.objects.values_list("name", "uid").get(pk=head.device_id)
    items = DesiredItem.objects.filter(device_id=head.device_id).order_by("kind", "key")
    rows = items.values_list("kind", "key", "version", "document_id", "remove")
    return messages.DesiredState(
        device=name,
        uid=str(uid),
        epoch=head.epoch,
        version=head.version,
        items=[
            messages.DesiredItem(kind=kind, key=key, version=changed, hash=hash or "", remove=remove)
            for kind, key, changed, hash, remove in rows
        ],
    )


def _token_hash(request: HttpRequest) -> str:
    header = request.META.get("HTTP_AUTHORIZATION", "")
    if not header.startswith(SCHEME):
        raise Unauthorised("no credential was sent; send Authorization: Bearer <credential>, or enrol first")
    return hash_of(header[len(SCHEME) :])


def _unknown() -> Unauthorised:
    return Unauthorised(
        "this credential is unknown: the device was forgotten, reset or enrolled anew; "
        "enrol again with a token from an operator"
    )


def _body(request: HttpRequest, type_: type[Body], limit: int) -> Body:
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isdigit() or int(length) > limit:
        raise TooLarge(f"the body has {length[:20]} bytes; allowed: {limit}")
    try:
        return msgspec.json.decode(request.read(limit), type=type_)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"the body is no {type_.__name__}: {error}") from None
    except RecursionError:  # fields that we pass over are read to their depth all the same
        raise Invalid(f"the body is no {type_.__name__}: it is nested too deeply") from None


def _json(body: Any, status: int = 200) -> HttpResponse:
    return HttpResponse(canonical.encode(body), status=status, content_type="application/json")


def _refusal(error: FleetError) -> HttpResponse:
    response = _problem(error.status, str(error), error.title)
    if error.status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="fleet"'
    if isinstance(error, Busy):
        response["Retry-After"] = str(error.retry_after)
    return response


def _problem(status: int, detail: str, title: str = "") -> HttpResponse:
    return HttpResponse(
        msgspec.json.encode(document(status, detail, title=title)), status=status, content_type=CONTENT_TYPE
    )


def over_plain_http(request: HttpRequest) -> bool:
    """Whether a credential would travel in clear although the settings ask for TLS."""
    return settings.SECURE_SSL_REDIRECT and not request.is_secure()


def refuse_plain_http() -> HttpResponse:
    """No redirect: a device that sent its credential in clear once would do so each time."""
    return _problem(403, "this control plane takes devices by https only; change [server] url in agent.toml")
