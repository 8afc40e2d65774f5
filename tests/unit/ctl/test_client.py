"""How fleetctl takes answers that are none of the fleet's, or no answer at this moment."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from fleet.ctl.client import Client
from fleet.ctl.config import Config
from fleet.ctl.errors import Exit, Refused

pytestmark = pytest.mark.clause("API-2")
PROBLEM = "application/problem+json"


class Something(HTTPServer):
    """Answers every request in one way and keeps the headers that came."""

    def __init__(self, status: int, body: str, content_type: str) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.answer = status, body.encode(), content_type
        self.seen: list[dict[str, str]] = []

    @property
    def client(self) -> Client:
        return Client(Config(f"http://127.0.0.1:{self.server_port}", "mine"))


class _Answer(BaseHTTPRequestHandler):
    server: Something

    def do_GET(self) -> None:
        self.server.seen.append(dict(self.headers))
        status, body, content_type = self.server.answer
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing to say."""


Answering = Callable[[int, str, str], Something]


@pytest.fixture
def answering() -> Iterator[Answering]:
    servers: list[tuple[Something, threading.Thread]] = []

    def begin(status: int, body: str, content_type: str) -> Something:
        server = Something(status, body, content_type)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        servers.append((server, thread))
        return server

    yield begin
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


def refusal(server: Something) -> Refused:
    with pytest.raises(Refused) as refused:
        server.client.get("devices/")
    return refused.value


def test_a_server_without_its_database_may_be_asked_again(answering: Answering) -> None:
    body = json.dumps({"status": 503, "title": "Busy", "detail": "the database does not answer"})
    refused = refusal(answering(503, body, PROBLEM))
    assert (refused.code, str(refused)) == (Exit.UNREACHABLE, "the database does not answer")


@pytest.mark.parametrize(
    ("status", "code"), [(502, Exit.UNREACHABLE), (504, Exit.UNREACHABLE), (500, Exit.FAILED), (404, Exit.NOT_FOUND)]
)
def test_what_speaks_no_problem_documents_is_quoted_by_its_status(
    answering: Answering, status: int, code: Exit
) -> None:
    refused = refusal(answering(status, "<html>sorry</html>", "text/html"))
    assert refused.code == code
    assert f"/api/v1/devices/ answered {status}" in str(refused)


@pytest.mark.parametrize(
    "body", ["[]", "{}", "nonsense", '{"detail": "x", "errors": [{}]}', '{"detail": "x", "errors": 5}']
)
def test_a_misshapen_problem_is_no_reason_to_fall_over(answering: Answering, body: str) -> None:
    assert "answered 422" in str(refusal(answering(422, body, PROBLEM)))


def test_json_that_is_none_is_named(answering: Answering) -> None:
    refused = refusal(answering(200, "{", "application/json"))
    assert refused.code == Exit.UNREACHABLE
    assert "did not answer with JSON" in str(refused)


def test_a_stray_netrc_does_not_take_the_tokens_place(
    answering: Answering, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login eve password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    server = answering(200, "{}", "application/json")
    server.client.get("devices/")
    assert server.seen[0]["Authorization"] == "Token mine"
