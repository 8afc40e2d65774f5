"""The updater's unix socket: one request line in, one reply line out, whoever is at the other end (SYS-7).

One thread serves all connections without ever waiting for one of them. A peer that is neither the agent's user nor
root hears so and is let go; of the others each user has a share of the connections, and when it asks for more its
oldest one is closed. So nobody can keep the others waiting, with silence, garbage or any number of bytes.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import socket
import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from agent.clock import Clock, SystemClock
from agent.wire.updater import MAX_REQUEST_BYTES, AnyReply, AnyRequest, Refusal

#: Seconds for a whole conversation.
TIME_LIMIT_SECONDS = 5.0
MOST_CONNECTIONS_PER_USER = 16
ROOT_UID = 0
_BACKLOG = 256
_CHUNK_BYTES = 65_536
_CREDENTIALS = struct.Struct("3i")

logger = logging.getLogger("agent.updater")


@dataclass(slots=True, eq=False)
class _Connection:
    """``outgoing`` is ``None`` until there is an answer; ``is_answered``: it is sent, what still comes is dropped."""

    socket: socket.socket
    uid: int
    ends_at: float
    incoming: bytearray = field(default_factory=bytearray)
    outgoing: memoryview | None = None
    is_answered: bool = False


class Server:
    """``allowed`` are the users that may ask. :meth:`stop` may be called from any thread and from signal handlers."""

    def __init__(
        self,
        path: Path,
        answer: Callable[[AnyRequest], AnyReply],
        *,
        allowed: Collection[int],
        group: int | None = None,
        limit_seconds: float = TIME_LIMIT_SECONDS,
        clock: Clock | None = None,
    ) -> None:
        self._answer = answer
        self._allowed = {ROOT_UID, *allowed}
        self._limit_seconds = limit_seconds
        self._clock = clock or SystemClock()
        self._selector = selectors.DefaultSelector()
        self._connections: list[_Connection] = []
        self._bell, self._ringer = socket.socketpair()
        self._ringer.setblocking(False)
        self._is_stopping = False
        self._path = path
        self._socket = _listen(path, group)
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._selector.register(self._bell, selectors.EVENT_READ)

    def serve(self) -> None:
        """Until :meth:`stop`; then the socket is gone."""
        try:
            while not self._is_stopping:
                self._turn()
        finally:
            self._close()

    def stop(self) -> None:
        self._is_stopping = True
        with contextlib.suppress(OSError):
            self._ringer.send(b"\0")

    # Inside --------------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        now = self._clock.monotonic()
        next_end = min((connection.ends_at for connection in self._connections), default=None)
        events = self._selector.select(None if next_end is None else max(0.0, next_end - now))
        for key, _ in events:
            if key.fileobj is self._socket:
                self._accept_all()
            elif isinstance(key.data, _Connection) and key.data in self._connections:
                self._serve(key.data)
        now = self._clock.monotonic()
        for connection in [one for one in self._connections if one.ends_at <= now]:
            self._drop(connection)

    def _accept_all(self) -> None:
        try:
            for _ in range(_BACKLOG):
                self._accept(self._socket.accept()[0])
        except BlockingIOError:
            return  # nobody else waits
        except OSError as error:
            logger.warning("a connection could not be accepted: %s", error.strerror)

    def _accept(self, peer: socket.socket) -> None:
        peer.setblocking(False)
        connection = _Connection(peer, _uid_of(peer), self._clock.monotonic() + self._limit_seconds)
        same = [one for one in self._connections if one.uid == connection.uid]
        for oldest in same[: max(0, len(same) - MOST_CONNECTIONS_PER_USER + 1)]:
            self._drop(oldest)
        self._connections.append(connection)
        self._selector.register(peer, selectors.EVENT_READ, connection)
        if connection.uid not in self._allowed:
            logger.warning("user %d may not ask the updater", connection.uid)
            message = f"user {connection.uid} is neither the agent's user nor root"
            self._reply(connection, Refusal(reason="not-allowed", message=message))

    def _serve(self, connection: _Connection) -> None:
        try:
            if connection.outgoing is None or connection.is_answered:
                self._read(connection)
            else:
                self._send(connection, connection.outgoing)
        except BlockingIOError:
            return
        except OSError:
            self._drop(connection)

    def _read(self, connection: _Connection) -> None:
        data = connection.socket.recv(_CHUNK_BYTES)
        if connection.is_answered:
            if not data:
                self._drop(connection)
            return
        connection.incoming += data
        line, end, _ = connection.incoming.partition(b"\n")
        if len(line) > MAX_REQUEST_BYTES:
            self._reply(connection, _invalid(f"the request is longer than {MAX_REQUEST_BYTES} bytes"))
        elif end:
            self._reply(connection, self._reply_to(bytes(line)))
        elif not data:
            self._reply(connection, _invalid("the request does not end in a line break"))

    def _reply_to(self, line: bytes) -> AnyReply:
        try:
            request = msgspec.json.decode(line, type=AnyRequest)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return _invalid(f"the request cannot be read: {error}")
        try:
            return self._answer(request)
        except Exception as error:  # one request must not end the updater, which may be in a package transaction
            logger.exception("a request could not be answered")
            return Refusal(reason="busy", message=f"the updater could not answer, see its log: {error}")

    def _reply(self, connection: _Connection, reply: AnyReply) -> None:
        connection.outgoing = memoryview(msgspec.json.encode(reply) + b"\n")
        self._selector.modify(connection.socket, selectors.EVENT_WRITE, connection)
        self._serve(connection)

    def _send(self, connection: _Connection, outgoing: memoryview) -> None:
        """All of it; then what the peer still sends is read and dropped, because closing on it would lose the reply."""
        connection.outgoing = outgoing[connection.socket.send(outgoing) :]
        if not connection.outgoing:
            connection.is_answered = True
            connection.socket.shutdown(socket.SHUT_WR)
            self._selector.modify(connection.socket, selectors.EVENT_READ, connection)

    def _drop(self, connection: _Connection) -> None:
        self._connections.remove(connection)
        self._selector.unregister(connection.socket)
        connection.socket.close()

    def _close(self) -> None:
        for connection in list(self._connections):
            self._drop(connection)
        self._path.unlink(missing_ok=True)
        self._selector.close()
        for one in (self._socket, self._bell, self._ringer):
            one.close()


def _listen(path: Path, group: int | None) -> socket.socket:
    """Only root and the group can connect at all, from the first moment on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # of an updater that was killed; two at once are kept apart by the state folder's lock
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        listening.bind(str(path))
    finally:
        os.umask(mask)
    if group is not None:
        os.chown(path, -1, group)
    path.chmod(0o660)
    listening.listen(_BACKLOG)
    listening.setblocking(False)
    return listening


def _uid_of(peer: socket.socket) -> int:
    """Who connected, as the kernel knows it."""
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(credentials)[1])


def _invalid(message: str) -> Refusal:
    return Refusal(reason="invalid", message=message)
