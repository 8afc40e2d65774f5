"""The agent's end of the updater's socket: one question, one answer."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Protocol

import msgspec

from agent.wire.updater import MAX_REPLY_BYTES, UPDATER_PROTOCOL, AnyReply, Request, UpdaterStatus

#: A reply takes milliseconds; the updater may be looking at dpkg's database on a slow card.
TIMEOUT_SECONDS = 20.0

_decode = msgspec.json.Decoder(AnyReply).decode


class UpdaterError(Exception):
    """The updater could not be asked; the message is one sentence that says why and what to do."""


class NoUpdater(UpdaterError):
    """This device has none."""


class Updater(Protocol):
    """What the agent asks; a simulation answers without a socket."""

    def ask(self, request: Request) -> AnyReply:
        """Raises UpdaterError when there is no answer that can be understood."""


class SocketUpdater:
    """The root updater behind a unix socket."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def ask(self, request: Request) -> AnyReply:
        try:
            answer = self._exchange(msgspec.json.encode(request) + b"\n")
        except (FileNotFoundError, NotADirectoryError):
            raise NoUpdater(
                f"no updater listens at {self._path}; see: systemctl status harmony-fleet-updater, "
                "or install it with: fleet-agent setup"
            ) from None
        except ConnectionRefusedError:
            raise UpdaterError("the updater does not run; see: systemctl status harmony-fleet-updater") from None
        except PermissionError:
            raise UpdaterError(
                f"the updater does not listen to this user ({self._path}); run: fleet-agent setup"
            ) from None
        except OSError as error:
            raise UpdaterError(f"the updater gave no answer: {error.strerror or error}") from None
        if not answer:
            raise UpdaterError("the updater ended before it answered; see: systemctl status harmony-fleet-updater")
        return understood(answer)

    def _exchange(self, line: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(TIMEOUT_SECONDS)
            connection.connect(str(self._path))
            connection.sendall(line)
            with connection.makefile("rb") as answers:
                return answers.readline(MAX_REPLY_BYTES)


def understood(answer: bytes) -> AnyReply:
    """The reply in a line.

    Raises:
        UpdaterError: it is none, or comes from an updater of another protocol.
    """
    try:
        reply = _decode(answer)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise UpdaterError("the updater's answer cannot be understood; run the setup of the newer release") from None
    if isinstance(reply, UpdaterStatus) and reply.protocol != UPDATER_PROTOCOL:
        raise UpdaterError(
            f"the updater speaks protocol {reply.protocol} and this agent {UPDATER_PROTOCOL}; "
            "run the setup of the newer release"
        )
    return reply
