"""Why a command ends, and the exit code that tells a script (API-2)."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes; documented in ``--help`` and docs/reference/fleetctl.md."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    DENIED = 4
    CONFLICT = 5
    UNREACHABLE = 6


EXPLAINED = {
    Exit.OK: "done; a watched rollout converged, or a task run completed",
    Exit.FAILED: "the server refused, or a watched rollout or task run failed, was ended or superseded",
    Exit.USAGE: "the command line is wrong, or a file or folder can't be read",
    Exit.NOT_FOUND: "there is no such object",
    Exit.DENIED: "not logged in, or not allowed",
    Exit.CONFLICT: "the object is in a state in which this can't be done, or exists already",
    Exit.UNREACHABLE: "no answer from the server, or the time was up",
}


class Refused(Exception):
    """Ends the command with a message and a code; ``lines`` replace the one message where there are several faults."""

    def __init__(self, message: str, code: Exit = Exit.FAILED, faults: list[tuple[str, str]] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.faults = faults or []
