"""The updater's socket and those who mean it harm: other users, garbage, floods, silence (SYS-7)."""

from __future__ import annotations

import json
import os
import socket
import stat
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.updater.server import MOST_CONNECTIONS_PER_USER, Server
from agent.wire.updater import MAX_REQUEST_BYTES
from tests.support.needs import need_root
from tests.support.updater_socket import ask, connect, rest, say
from tests.support.updaters import UID, UpdatingDevice

LIMIT_SECONDS = 2.0
AGENT, STRANGER, GROUP = 4711, 4712, 4713
STATUS = b'{"request":"status"}\n'


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """The socket of an updater that serves the agent's user and root."""
    device = UpdatingDevice(tmp_path / "state")
    folder = Path(tempfile.mkdtemp(prefix="fu-", dir="/tmp"))  # short, and other users may enter it
    folder.chmod(0o755)
    group = GROUP if os.geteuid() == 0 else None
    server = Server(
        folder / "s",
        device.updater.answer,
        allowed={AGENT, os.geteuid()},
        group=group,
        limit_seconds=LIMIT_SECONDS,
    )
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield folder / "s"
    server.stop()
    thread.join(10)
    assert not thread.is_alive()
    assert not (folder / "s").exists()
    folder.rmdir()


@pytest.mark.clause("SYS-7")
def test_one_line_is_asked_and_one_is_answered(path: Path) -> None:
    status = ask(path, request="status")
    assert (status["reply"], status["capabilities"]) == ("status", ["AptFullUpgradeV1"])
    begun = ask(path, request="begin", attempt=UID, executor="systemUpgradeV1", remaining_seconds=60)
    assert (begun["reply"], begun["state"]) == ("standing", "accepted")
    page = ask(path, request="journal", attempt=UID)
    assert [entry["step"] for entry in page["entries"]] == ["accepted"]
    assert ask(path, request="contact", boot_id=status["boot_id"]) == {"reply": "noted"}


@pytest.mark.clause("SYS-7")
@pytest.mark.parametrize(
    "more",
    [
        {"packages": ["podman"]},
        {"command": "apt-get dist-upgrade"},
        {"repository": "http://example.com"},
        {"path": "/etc"},
        {"reboot": False},
        {"executor": "shell"},
        {"attempt": "../../etc/passwd"},
        {"attempt": f"{UID}\n"},
        {"remaining_seconds": -1},
        {"remaining_seconds": 10**9},
        {"remaining_seconds": "60"},
    ],
    ids=str,
)
def test_no_field_can_carry_anything_else(path: Path, more: dict[str, object]) -> None:
    request = {"request": "begin", "attempt": UID, "executor": "systemUpgradeV1", "remaining_seconds": 60, **more}
    reply = say(path, json.dumps(request).encode() + b"\n")
    assert (reply["reply"], reply["reason"]) == ("refusal", "invalid")
    assert reply["message"].startswith("the request cannot be read: ")
    assert "attempts" not in ask(path, request="status")


@pytest.mark.clause("SYS-7")
@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\n",
        STATUS[:-5],
        STATUS.strip(),
        b"\xff\xfe\n",
        b"null\n",
        b"[" * 4000 + b"\n",
        b'{"request":"shell"}\n',
        b"GET / HTTP/1.1\r\n\r\n",
        b"x" * (MAX_REQUEST_BYTES + 1) + b"\n",
    ],
    ids=lambda garbage: repr(garbage[:20]),
)
def test_garbage_is_refused_with_a_sentence_and_harms_nobody(path: Path, garbage: bytes) -> None:
    reply = say(path, garbage)
    assert (reply["reply"], reply["reason"]) == ("refusal", "invalid")
    assert ask(path, request="status")["reply"] == "status"


@pytest.mark.clause("SYS-7")
def test_a_hundred_megabytes_are_neither_kept_nor_waited_for(path: Path) -> None:
    with connect(path) as client:
        megabyte = b"x" * 1_048_576
        sent = 0
        try:
            for _ in range(100):
                client.sendall(megabyte)
                sent += 1
        except OSError:
            pass  # the other end has had enough
        else:
            client.shutdown(socket.SHUT_WR)
            assert json.loads(rest(client))["message"] == f"the request is longer than {MAX_REQUEST_BYTES} bytes"
        assert sent >= 1
        assert ask(path, request="status")["reply"] == "status"


@pytest.mark.clause("SYS-7")
def test_who_says_half_a_line_is_let_go_after_a_while_and_nobody_waits_for_it(path: Path) -> None:
    with connect(path) as slow:
        slow.sendall(STATUS[:10])
        started = time.monotonic()
        assert ask(path, request="status")["reply"] == "status"
        assert time.monotonic() - started < LIMIT_SECONDS
        assert rest(slow) == b""
        assert time.monotonic() - started < LIMIT_SECONDS + 3


@pytest.mark.clause("SYS-7")
def test_who_reads_late_keeps_nobody_waiting_and_still_gets_its_reply(path: Path) -> None:
    with connect(path) as late:
        late.sendall(STATUS)
        assert ask(path, request="status")["reply"] == "status"
        assert json.loads(rest(late))["reply"] == "status"


@pytest.mark.clause("SYS-7")
def test_many_connections_close_the_oldest_of_the_same_user(path: Path) -> None:
    flood = [connect(path) for _ in range(10 * MOST_CONNECTIONS_PER_USER)]
    try:
        assert ask(path, request="status")["reply"] == "status"
        assert rest(flood[0]) == b""
        flood[-1].sendall(STATUS)
        assert json.loads(rest(flood[-1]))["reply"] == "status"
    finally:
        for client in flood:
            client.close()


@pytest.mark.clause("SYS-7")
def test_only_root_and_the_agents_group_can_connect(path: Path) -> None:
    need_root("the socket belongs to a group")
    found = path.stat()
    assert (stat.S_IMODE(found.st_mode), found.st_gid) == (0o660, GROUP)
    assert as_user(STRANGER, STRANGER, lambda: _cannot_connect(path))


@pytest.mark.clause("SYS-7")
def test_a_peer_is_who_the_kernel_says(path: Path) -> None:
    need_root("requests come from other users")
    assert as_user(AGENT, GROUP, lambda: ask(path, request="status")["reply"] == "status")
    assert as_user(STRANGER, GROUP, lambda: ask(path, request="status")["reason"] == "not-allowed")
    message = f"user {STRANGER} is neither the agent's user nor root"
    assert as_user(STRANGER, GROUP, lambda: ask(path, request="status")["message"] == message)


@pytest.mark.clause("SYS-7")
def test_a_flood_of_one_user_takes_nothing_from_another(path: Path) -> None:
    need_root("requests come from other users")
    flood = [connect(path) for _ in range(3 * MOST_CONNECTIONS_PER_USER)]
    try:
        assert as_user(AGENT, GROUP, lambda: ask(path, request="status")["reply"] == "status")
    finally:
        for client in flood:
            client.close()


def as_user(uid: int, gid: int, check: Callable[[], bool]) -> bool:
    """What ``check`` says in a child that is another user."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)
            code = 0 if check() else 1
        except BaseException:  # a child of pytest must never come back
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _cannot_connect(path: Path) -> bool:
    try:
        connect(path).close()
    except PermissionError:
        return True
    return False
