"""What is said in an object's status, in the form that Argo CD, Flux and ``kubectl wait`` read. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fleet.core.conditions import Conditions, set_condition

REFUSED = "Refused"
_GOOD = ("Converged", "Completed")
_BAD = ("Failed", REFUSED)
_OVER = ("Cancelled", "Superseded")
#: Conditions that we say of an object in the cluster, beside those that every entrance shows.
_OURS = ("Accepted", "Ready", "Progressing", "Degraded")
#: Long, of interest for a person who looks into one run, and not in the schema.
_LEFT_OUT = ("history", "journal")


def status_of(
    shown: dict[str, Any], item: dict[str, Any], *, refusal: tuple[str, str], now: datetime
) -> dict[str, Any]:
    """The whole status: ``shown`` is what other entrances show, empty when nothing was ever accepted.

    ``refusal`` is reason and sentence of what is not accepted, or two empty texts. A time moves with its condition.
    """
    generation = item["metadata"]["generation"]
    reason, sentence = refusal
    status = _plain(shown)
    if refusal[0]:
        status |= {"phase": shown.get("phase", REFUSED), "message": sentence}
    phase = status["phase"]
    good = phase in _GOOD and not reason
    bad = phase in _BAD or bool(reason)
    before = [each for each in _conditions(item) if each["type"] in _OURS]
    message = status.get("message", "") or phase
    conditions: Conditions = before
    for type_, holds, why, words in (
        ("Accepted", not reason, reason or "Valid", sentence or "The manifest is valid"),
        ("Ready", good, reason or phase, message),
        ("Progressing", not good and not bad and phase not in _OVER, reason or phase, message),
        ("Degraded", bad, reason or phase, message),
    ):
        conditions = set_condition(
            conditions, type=type_, status=holds, reason=why, message=words, now=now, generation=generation
        )
    shared = [
        {"message": each["reason"], **each, "observedGeneration": generation} for each in status.get("conditions", [])
    ]
    theirs = [each for each in shared if each["type"] not in _OURS]
    return {**status, "observedGeneration": generation, "conditions": [*conditions, *theirs]}


def _conditions(item: dict[str, Any]) -> Conditions:
    found: Conditions = (item.get("status") or {}).get("conditions") or []
    return found


def _plain(value: Any) -> Any:
    """Without what is not known yet and without empty texts: server-side apply of 1.20 makes nulls of those."""
    if isinstance(value, dict):
        known = {key: inner for key, inner in value.items() if inner not in (None, "") and key not in _LEFT_OUT}
        return {key: _plain(inner) for key, inner in known.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value
