"""The HTTP side of the agent: its calls to the control plane, and what may go wrong with them."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
import requests
import urllib3

from agent.causes import causes_of, reason
from agent.version import VERSION
from agent.wire.messages import (
    PROTOCOL,
    AttemptOffer,
    DesiredState,
    EnrolReply,
    EnrolRequest,
    LogReply,
    ProblemDocument,
    Report,
    ReportReply,
    SecretsReply,
    SecretsRequest,
)

TIMEOUT_SECONDS = (10.0, 30.0)  # to connect, between two bytes
#: Below the minute after which proxies give up on a silent server.
WAIT_SECONDS = 55
MAX_ANSWER_BYTES = 8 * 1024 * 1024
LONGEST_PAUSE_SECONDS = 3600.0
_PATH = "/api/agent/v1"
T = TypeVar("T", bound=msgspec.Struct)
_OK, _CREATED, _ACCEPTED, _NO_CONTENT, _NOT_MODIFIED = 200, 201, 202, 204, 304
_UNAUTHORISED = 401
_TEMPORARY = (408, 425, 429)


class ControlError(Exception):
    """A call that did not succeed. ``is_temporary``: the same call may succeed later without anybody's help.

    ``retry_after`` is the pause that the server asked for, in seconds.
    """

    def __init__(self, message: str, *, is_temporary: bool = True, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.is_temporary = is_temporary
        self.retry_after = retry_after


class Unreachable(ControlError):
    """No answer at all."""


class Unauthorised(ControlError):
    """The control plane does not accept this device's credential (any more)."""

    def __init__(self, message: str) -> None:
        super().__init__(message, is_temporary=False)


@dataclass(frozen=True, slots=True)
class Polled:
    """A desired state that differs from the one known before."""

    state: DesiredState
    etag: str


class ControlPlane:
    """One control plane. ``credential`` is asked at every call, so that a new enrolment is noticed at once.

    ``proxy`` is on the way to it, whatever the environment says; without one the environment's ``HTTPS_PROXY``,
    ``HTTP_PROXY`` and ``NO_PROXY`` count. ``session``: connections that many simulated devices of one process share.
    """

    def __init__(
        self,
        url: str,
        *,
        ca_file: str = "",
        proxy: str = "",
        credential: Callable[[], str] = lambda: "",
        session: requests.Session | None = None,
    ) -> None:
        self._url = url.rstrip("/")
        self._credential = credential
        self._is_shared = session is not None
        self._session = session or requests.Session()
        self._session.headers["User-Agent"] = f"fleet-agent/{VERSION}"
        # Both are given with each call: those of the session, the environment would win over.
        self._verify = ca_file or None
        self._proxies = {"http": proxy, "https": proxy} if proxy else None

    def twin(self, url: str = "") -> ControlPlane:
        """The same with connections of its own (unless they are shared anyway), for another thread; at another address
        when one is given.
        """
        twin = copy.copy(self)
        twin._url = url.rstrip("/") or self._url
        if not self._is_shared:
            twin._session = requests.Session()
            twin._session.headers.update(self._session.headers)
        return twin

    def enrol(self, request: EnrolRequest) -> EnrolReply:
        """Exchange a token for a credential (DEV-1).

        Raises:
            ControlError: with the server's own sentence.
        """
        answer = self._call("POST", "/enroll", body=request, signed=False)
        return _decoded(answer, EnrolReply)

    def desired(self, etag: str) -> Polled | None:
        """The desired state; ``None`` when it is still the one behind ``etag``."""
        answer = self._call("GET", "/desired", headers={"If-None-Match": etag} if etag else {})
        if answer.status == _NOT_MODIFIED:
            return None
        state = _decoded(answer, DesiredState)
        if state.protocol != PROTOCOL:
            raise ControlError(
                f"the control plane speaks protocol {state.protocol}, this agent speaks {PROTOCOL}; upgrade the older",
                is_temporary=False,
            )
        return Polled(state, answer.etag)

    def wait(self, etag: str) -> bool:
        """Whether something differs from ``etag``, as soon as it does; False after :data:`WAIT_SECONDS` without.

        Raises:
            ControlError: also where waiting is not served.
        """
        patience = WAIT_SECONDS + TIMEOUT_SECONDS[1]
        answer = self._call("GET", f"/wait?seconds={WAIT_SECONDS}", headers={"If-None-Match": etag}, patience=patience)
        if answer.status not in (_NO_CONTENT, _NOT_MODIFIED):
            raise ControlError(f"waiting was answered with {answer.status}", is_temporary=False)
        return answer.status == _NO_CONTENT

    def document(self, hash_: str, type_: type[T]) -> tuple[bytes, T]:
        """A document with its canonical bytes, which are proven to have the hash.

        Raises:
            ControlError: also when what came is not what was asked for.
        """
        answer = self._call("GET", f"/documents/{hash_}")
        found = hashlib.sha256(answer.body).hexdigest()
        if found != hash_:
            raise ControlError(f"document {hash_[:12]} came with the hash {found[:12]}")
        return answer.body, _decoded(answer, type_)

    def answer_logs(self, reply: LogReply) -> None:
        """Answer a request for a log (AGT-16)."""
        self._call("POST", "/logs", body=reply)

    def offer(self, attempt: str) -> AttemptOffer:
        """How long this device's attempt may still begin (TSK-4).

        Raises:
            ControlError: not temporary when this device has no such attempt.
        """
        return _decoded(self._call("GET", f"/attempts/{attempt}"), AttemptOffer)

    def report(self, report: Report) -> ReportReply:
        return _decoded(self._call("POST", "/report", body=report), ReportReply)

    def secrets(self, request: SecretsRequest) -> SecretsReply:
        """What this device may have of it (AGT-10).

        Called by the threads that work on deployments, beside the poll: a session's connections may be shared, and
        nothing else of it changes here.
        """
        return _decoded(self._call("POST", "/secrets", body=request), SecretsReply)

    def _call(
        self,
        method: str,
        path: str,
        *,
        body: msgspec.Struct | None = None,
        headers: dict[str, str] | None = None,
        signed: bool = True,
        patience: float = TIMEOUT_SECONDS[1],
    ) -> _Answer:
        sent = {"Content-Type": "application/json", "Accept": "application/json", **(headers or {})}
        try:
            with contextlib.closing(
                self._session.request(
                    method,
                    f"{self._url}{_PATH}{path}",
                    data=None if body is None else msgspec.json.encode(body),
                    headers=sent,
                    auth=_Bearer(self._sendable_credential() if signed else ""),
                    verify=self._verify,
                    proxies=self._proxies,
                    timeout=(TIMEOUT_SECONDS[0], patience),
                    allow_redirects=False,
                    stream=True,
                )
            ) as response:
                return _checked(response, _limited(response))
        except (requests.RequestException, OSError, ValueError) as error:  # some malformed addresses are plain ones
            raise Unreachable(self._failure(error)) from None

    def _sendable_credential(self) -> str:
        """Libraries would repeat one that has a line break."""
        credential = self._credential()
        if not (credential.isascii() and credential.isprintable()):
            raise ControlError(
                f"{self._url} cannot be called: what is kept as this device's credential is none; enrol again",
                is_temporary=False,
            )
        return credential

    def _failure(self, error: BaseException) -> str:
        """One sentence about a call that brought no answer: what stands in the way, and which setting is about it."""
        causes = list(causes_of(error))
        untrusted = next((cause for cause in causes if isinstance(cause, ssl.SSLCertVerificationError)), None)
        if untrusted is not None:
            trusted = f"the authorities in {self._verify}" if self._verify else "this system's authorities"
            hint = "server.ca_file names the file with the authority to trust"
            return f"{self._url} is not trusted by {trusted}: {untrusted.verify_message}; {hint}"
        if self._verify and not Path(self._verify).is_file():
            return f"{self._url} cannot be called: server.ca_file {self._verify} does not exist"
        if self._verify and any(isinstance(cause, ssl.SSLError) for cause in causes):
            return f"{self._url} cannot be called with server.ca_file {self._verify}: {reason(causes)}"
        if isinstance(error, ValueError) and _is_address(self._url) and self._proxy():
            setting = "server.proxy" if self._proxies else "the proxy of the environment"
            hint = "http://user:password@host:port, with %XX for special characters of the password"
            return f"{self._url} cannot be called: {setting} is no address; allowed: {hint}"
        if any(isinstance(cause, requests.exceptions.ProxyError) for cause in causes):
            way = f"proxy {_without_password(self._proxy())}" if self._proxies else "the proxy of the environment"
            return f"{self._url} cannot be reached through {way}: {reason(causes)}"
        return f"{self._url} cannot be reached: {reason(causes)}"

    def _proxy(self) -> str:
        """The one that a call goes through; empty when it needs none."""
        proxies = self._proxies or requests.utils.get_environ_proxies(self._url)
        return str(requests.utils.select_proxy(self._url, proxies) or "")


class _Bearer(requests.auth.AuthBase):
    """The credential, or none. Given even then: without an ``auth``, requests would look for one in a ``.netrc``."""

    def __init__(self, credential: str) -> None:
        self._credential = credential

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._credential:
            request.headers["Authorization"] = f"Bearer {self._credential}"
        return request


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes
    etag: str


def _limited(response: requests.Response) -> bytes:
    parts, size = [], 0
    for part in response.iter_content(65_536):
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            raise ControlError(f"the control plane sent more than {MAX_ANSWER_BYTES} bytes")
        parts.append(part)
    return b"".join(parts)


def _checked(response: requests.Response, body: bytes) -> _Answer:
    status = response.status_code
    if status in (_OK, _CREATED, _ACCEPTED, _NO_CONTENT, _NOT_MODIFIED):
        return _Answer(status, body, response.headers.get("ETag", ""))
    sentence = f"the control plane answered {status}{_detail(body)}"
    if status == _UNAUTHORISED:
        raise Unauthorised(sentence)
    if 300 <= status < 400:
        place = response.headers.get("Location", "nowhere")
        raise ControlError(f"{sentence}: a redirect to {place}; put the final address into server.url")
    is_temporary = status >= 500 or status in _TEMPORARY
    raise ControlError(sentence, is_temporary=is_temporary, retry_after=_retry_after(response))


def _detail(body: bytes) -> str:
    try:
        problem = msgspec.json.decode(body, type=ProblemDocument)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    text = problem.detail or problem.title
    return f": {text[:1000]}" if text else ""


def _retry_after(response: requests.Response) -> float:
    """Seconds; a date (which no part of the control plane sends) counts as none."""
    try:
        return min(max(0.0, float(response.headers.get("Retry-After", "0"))), LONGEST_PAUSE_SECONDS)
    except ValueError:
        return 0.0


def _decoded(answer: _Answer, type_: type[T]) -> T:
    try:
        return msgspec.json.decode(answer.body, type=type_)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ControlError(f"the control plane's answer is no {type_.__name__}: {error}") from None


def _without_password(url: str) -> str:
    return re.sub(r"//.*@", "//…@", url)


def _is_address(url: str) -> bool:
    try:
        return bool(urllib3.util.parse_url(url).host)
    except ValueError:
        return False
