"""Why a call over the network did not succeed, in the system's own words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """From the outermost wrapping to the innermost cause."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        nested = [getattr(seen, "reason", None), *seen.args, seen.__cause__, seen.__context__]
        seen = next((inner for inner in nested if isinstance(inner, BaseException)), None)


def reason(causes: Sequence[BaseException]) -> str:
    """The innermost cause, in the system's words."""
    text = ""
    for cause in causes:
        text = getattr(cause, "strerror", None) or str(cause) or text
    return text.rpartition(": ")[2] if "object at 0x" in text else text
