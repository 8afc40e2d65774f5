"""What follows from facts about a device: pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.wire import names

NEVER, ONLINE, STALE, OFFLINE = "never", "online", "stale", "offline"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Seconds without a report after which a device is stale, then offline (DEV-5)."""

    stale: int
    offline: int


def connectivity(last_seen: datetime | None, now: datetime, thresholds: Thresholds) -> str:
    """Online, stale, offline or never, from the last report alone (DEV-5)."""
    if last_seen is None:
        return NEVER
    silence = now - last_seen
    if silence >= timedelta(seconds=thresholds.offline):
        return OFFLINE
    return STALE if silence >= timedelta(seconds=thresholds.stale) else ONLINE


def effective_labels(
    name: str, canary: bool, operator: Mapping[str, str], reported: Mapping[str, str]
) -> dict[str, str]:
    """What selectors see: an operator's label wins over a reported one (DEV-4), the reserved ones are ours (TSK-1)."""
    labels = {**reported, **operator}
    labels = {key: value for key, value in labels.items() if key not in names.RESERVED_LABELS}
    labels[names.DEVICE_ID_LABEL] = name
    if canary:
        labels[names.CANARY_LABEL] = "true"
    return labels


@dataclass(frozen=True, slots=True)
class Sifted:
    """Labels that a device may have, and a sentence for each that it may not."""

    labels: dict[str, str]
    notices: list[str]


def sift(reported: Mapping[str, str]) -> Sifted:
    """Split reported labels into good ones and reasons for the others (TSK-1)."""
    labels: dict[str, str] = {}
    notices: list[str] = []
    for key, value in sorted(reported.items()):
        if refusal := label_refusal(key, value):
            notices.append(f"label {key[:80]!r} was ignored: {refusal}")
        else:
            labels[key] = value
    return Sifted(labels, notices)


def label_refusal(key: str, value: str) -> str | None:
    """Why this label can be set neither by a device nor by an operator."""
    if key in names.RESERVED_LABELS:
        return "it is set by the control plane only"
    if not names.fits(names.LABEL_KEY, key):
        return "the key has not the form of a Kubernetes label key"
    if not names.fits(names.LABEL_VALUE, value):
        return "the value has not the form of a Kubernetes label value"
    return None


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """An enrolment token as far as its validity depends on it."""

    expires_at: datetime
    use_limit: int
    uses: int
    revoked_at: datetime | None


def token_refusal(token: TokenFacts, now: datetime) -> str | None:
    """Why this token lets nobody in, or nothing when it does (DEV-1, case E1)."""
    if token.revoked_at is not None:
        return f"was revoked at {token.revoked_at:%Y-%m-%d %H:%M} UTC"
    if now >= token.expires_at:
        return f"expired at {token.expires_at:%Y-%m-%d %H:%M} UTC"
    if token.uses >= token.use_limit:
        return f"has been used {token.uses} times; its limit is {token.use_limit}"
    return None
