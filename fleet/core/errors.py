"""What services raise when they refuse; every entrance turns these into its own kind of answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from agent.wire.rules import Fault


class FleetError(Exception):
    """A refusal that is meant to be read: the text says what was found, what is allowed and what to do next."""

    status: ClassVar[int] = 400
    title: ClassVar[str] = "Refused"

    @property
    def faults(self) -> Sequence[Fault]:
        """What is wrong in detail, when there is more than the one sentence."""
        return ()


class Invalid(FleetError):
    """The input is readable and wrong."""

    status = 422
    title = "Invalid"

    def __init__(self, message: str, faults: Sequence[Fault] = ()) -> None:
        super().__init__(message)
        self._faults = tuple(faults)

    @property
    def faults(self) -> Sequence[Fault]:
        return self._faults


class Unauthorised(FleetError):
    """Nobody knows who asks."""

    status = 401
    title = "Not authorised"


class Denied(FleetError):
    """It is known who asks, and that they may not."""

    status = 403
    title = "Not allowed"


class NotFound(FleetError):
    """There is no such object."""

    status = 404
    title = "Not found"


class Conflict(FleetError):
    """The object is in a state in which this can't be done, or somebody was faster."""

    status = 409
    title = "Conflict"


class TooLarge(FleetError):
    """The input is larger than any sensible one."""

    status = 413
    title = "Too large"


class Busy(FleetError):
    """Not now: the caller keeps what it has and comes again after ``retry_after`` seconds (case E6)."""

    status = 503
    title = "Busy"
    retry_after: ClassVar[int] = 30
