"""What a release says of itself in its ``release.json``, and whether one may follow another. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from agent.wire.manifest import AgentUpgrade

DESCRIPTION = "release.json"
#: Of the archive's digest, in the name of the folder that an upgrade unpacks it to.
_DIGITS = 12


class Format(msgspec.Struct, frozen=True):
    """Versions of one format of configuration or state: those that a release reads, and the one that it writes."""

    reads: tuple[int, ...] = (1,)
    writes: int = 1


class Release(msgspec.Struct, frozen=True):
    """``files`` are SHA-256 digests by path, ``built`` Unix seconds; ``formats`` by name (UPG-8)."""

    version: str
    architecture: str
    built: float
    files: dict[str, str]
    formats: dict[str, Format] = {}


def formats_problem(candidate: Mapping[str, Format], installed: Mapping[str, Format]) -> str:
    """Why the candidate may not follow the installed release, or empty (UPG-8).

    What one of both does not know is new or gone: the installed release never looks at it.
    """
    for name in sorted(candidate.keys() & installed.keys()):
        new, old = candidate[name], installed[name]
        if new.writes not in old.reads:
            return f"it writes {name} in format {new.writes}, and the installed release reads {_words(old.reads)}"
        if old.writes not in new.reads:
            return f"it reads {name} in format {_words(new.reads)}, and the installed release has written {old.writes}"
    return ""


def place(target: AgentUpgrade) -> str:
    """The name of the folder below ``releases`` that ``target`` is unpacked to; another archive, another folder."""
    return f"{target.version}-{target.sha256[:_DIGITS]}"


def _words(versions: tuple[int, ...]) -> str:
    return " or ".join(map(str, versions)) or "none"
