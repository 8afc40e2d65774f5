"""A control plane in memory that speaks the production HTTP contract, for tests of the agent alone."""

from __future__ import annotations

import hashlib
import ssl
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from agent.wire import canonical
from agent.wire.manifest import PodmanService, PodmanV0
from agent.wire.messages import (
    DEPLOYMENT_KIND,
    LOGS_KIND,
    DeploymentDocument,
    DeploymentReport,
    DesiredItem,
    DesiredState,
    EnrolReply,
    EnrolRequest,
    LogReply,
    LogRequestDocument,
    RegistryLogin,
    Report,
    ReportReply,
    SecretsReply,
    SecretsRequest,
    SecretValue,
)

UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
PREFIX = "/api/agent/v1"


@dataclass
class FakeControlPlane:
    """One device's desired state and reports. What a test sets takes effect at the next call of the agent."""

    device: str = "edge-1"
    uid: str = UID
    token: str = "enrol-me"
    credential: str = "credential-1"
    epoch: int = 1
    version: int = 0
    items: dict[str, DesiredItem] = field(default_factory=dict)
    documents: dict[str, bytes] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    calls: list[tuple[str, int]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    #: What this device may have, by name and key; requests for it as they came.
    secrets: dict[tuple[str, str], str] = field(default_factory=dict)
    #: User and password of registries that this device may fetch from.
    logins: dict[str, tuple[str, str]] = field(default_factory=dict)
    secret_requests: list[SecretsRequest] = field(default_factory=list)
    #: Requests for secrets are answered with this status instead.
    refuse_secrets_with: int = 0
    #: Logs as they came, and the status that answers are refused with.
    logs: list[LogReply] = field(default_factory=list)
    refuse_logs_with: int = 0
    #: Every call is answered with this status (and ``retry_after``) instead.
    refuse_with: int = 0
    retry_after: str = ""
    #: Who waits is answered, at once because the test's clock stands still.
    serves_waiting: bool = False
    #: Reports are taken in, and the connection is closed without an answer.
    lose_replies: bool = False

    #: Serve HTTPS by this.
    tls: ssl.SSLContext | None = None
    #: The address of this machine at which it listens.
    host: str = "127.0.0.1"

    def __enter__(self) -> FakeControlPlane:
        fake = self

        class Handler(_Handler):
            control = fake

        self._server = _Server((self.host, 0), Handler)
        if self.tls:
            self._server.socket = self.tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.host}:{self._server.server_address[1]}"

    @property
    def etag(self) -> str:
        return f'"{self.epoch}.{self.version}"'

    def want(self, uid: str, score: PodmanV0, *, revision: int = 1, name: str = "analysis-api", **more: Any) -> str:
        """The device shall have this deployment; the document's hash."""
        document = DeploymentDocument(uid=uid, namespace="default", name=name, revision=revision, score=score, **more)
        data = canonical.encode(document)
        hash_ = hashlib.sha256(data).hexdigest()
        self.documents[hash_] = data
        self._put(DesiredItem(kind=DEPLOYMENT_KIND, key=uid, version=self.version + 1, hash=hash_))
        return hash_

    def want_log(self, request: str, deployment: str, container: str, lines: int = 100) -> None:
        """Somebody asks for the end of a container's log."""
        asked = LogRequestDocument(request=request, deployment=deployment, container=container, lines=lines)
        data = canonical.encode(asked)
        hash_ = hashlib.sha256(data).hexdigest()
        self.documents[hash_] = data
        self._put(DesiredItem(kind=LOGS_KIND, key=request, version=self.version + 1, hash=hash_))

    def remove(self, uid: str) -> None:
        """The device shall prove that it no longer has this deployment."""
        self._put(DesiredItem(kind=DEPLOYMENT_KIND, key=uid, version=self.version + 1, remove=True))

    def drop(self, uid: str) -> None:
        """The deployment is not mentioned any more."""
        del self.items[uid]
        self.version += 1

    def state(self) -> DesiredState:
        return DesiredState(
            device=self.device, uid=self.uid, version=self.version, epoch=self.epoch, items=list(self.items.values())
        )

    def last(self, uid: str) -> DeploymentReport:
        """What the newest report says of a deployment."""
        newest = max(self.reports, key=lambda report: report.sequence)
        return next(item for item in newest.deployments if item.uid == uid)

    def says(self, uid: str, state: str) -> bool:
        """Whether the newest report has this deployment in this state."""
        return any(
            item.uid == uid and item.state == state for report in self.reports[-1:] for item in report.deployments
        )

    def reports_of(self, uid: str) -> list[DeploymentReport]:
        """What was said of a deployment, oldest first."""
        return [item for report in self.reports for item in report.deployments if item.uid == uid]

    def _put(self, item: DesiredItem) -> None:
        self.items[item.key] = item
        self.version = item.version


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """An agent that is killed breaks its connection; that is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    control: FakeControlPlane
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if not self._may_go_on():
            return
        path = self.path.removeprefix(PREFIX)
        if path == "/desired":
            self._desired()
        elif path.startswith("/wait?") and self.control.serves_waiting:
            self._answer(304 if self.headers.get("If-None-Match") == self.control.etag else 204, b"")
        elif path.startswith("/documents/") and path.rpartition("/")[2] in self.control.documents:
            self._answer(200, self.control.documents[path.rpartition("/")[2]])
        else:
            self._problem(404, "there is no such document")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == f"{PREFIX}/enroll":
            self._enrol(msgspec.json.decode(body, type=EnrolRequest))
        elif not self._may_go_on():
            return
        elif self.path == f"{PREFIX}/secrets":
            self._secrets(msgspec.json.decode(body, type=SecretsRequest))
        elif self.path == f"{PREFIX}/logs":
            self._log(msgspec.json.decode(body, type=LogReply))
        else:
            self._report(msgspec.json.decode(body, type=Report))

    def _enrol(self, request: EnrolRequest) -> None:
        if request.token != self.control.token:
            self._problem(403, "the enrolment token is expired or used up")
            return
        reply = EnrolReply(device=request.device, uid=self.control.uid, credential=self.control.credential)
        self._answer(201, msgspec.json.encode(reply))

    def _desired(self) -> None:
        etag = self.control.etag
        if self.headers.get("If-None-Match") == etag:
            self._answer(304, b"", etag)
        else:
            self._answer(200, msgspec.json.encode(self.control.state()), etag)

    def _report(self, report: Report) -> None:
        known = max((old.sequence for old in self.control.reports), default=0)
        if report.sequence > known:
            self.control.reports.append(report)
        if self.control.lose_replies:
            self.control.calls.append((self.path, 0))
            self.close_connection = True
            self.connection.close()
            return
        reply = ReportReply(
            sequence=report.sequence, resume_after=max(known, report.sequence), notices=self.control.notices
        )
        self._answer(200, msgspec.json.encode(reply))

    def _secrets(self, request: SecretsRequest) -> None:
        self.control.secret_requests.append(request)
        if self.control.refuse_secrets_with:
            self._problem(self.control.refuse_secrets_with, "the vault is closed")
            return
        asked = [(reference.name, reference.key) for reference in request.references]
        known = self.control.secrets
        values = [
            SecretValue(name=name, key=key, value=known[name, key]) for name, key in asked if (name, key) in known
        ]
        logins = [
            RegistryLogin(registry=name, username=self.control.logins[name][0], password=self.control.logins[name][1])
            for name in request.registries
            if name in self.control.logins
        ]
        self._answer(200, msgspec.json.encode(SecretsReply(values=values, registries=logins)))

    def _log(self, reply: LogReply) -> None:
        if self.control.refuse_logs_with:
            self._problem(self.control.refuse_logs_with, "there is no such request")
            return
        self.control.logs.append(reply)
        self._answer(202, b"{}")

    def _may_go_on(self) -> bool:
        if self.control.refuse_with:
            self._problem(self.control.refuse_with, "come back later")
            return False
        if self.headers.get("Authorization") != f"Bearer {self.control.credential}":
            self._problem(401, "the credential is not known")
            return False
        return True

    def _problem(self, status: int, detail: str) -> None:
        self._answer(status, msgspec.json.encode({"title": "Refused", "status": status, "detail": detail}))

    def _answer(self, status: int, body: bytes, etag: str = "") -> None:
        self.control.calls.append((self.path, status))
        self.send_response(status)
        if etag:
            self.send_header("ETag", etag)
        if self.control.retry_after:
            self.send_header("Retry-After", self.control.retry_after)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""


def service(name: str, image: str, **fields: Any) -> PodmanService:
    return PodmanService(name=name, image=image, **fields)


def score(*services: PodmanService, init: PodmanService | None = None) -> PodmanV0:
    return PodmanV0(services=list(services), init_container=init)
