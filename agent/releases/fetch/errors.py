"""What may go wrong while a release is fetched."""

from __future__ import annotations


class FetchError(Exception):
    """The archive is not there; the message is one sentence without secrets or query strings.

    ``is_temporary``: the same may succeed later. ``retry_after``: the pause that the server asked for, in seconds.
    """

    def __init__(self, message: str, *, is_temporary: bool = False, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.is_temporary = is_temporary
        self.retry_after = retry_after
