"""Why a secret is not to be had. No message ever holds a value, not even a part of one (AGT-10)."""

from __future__ import annotations

from agent.wire.manifest import MAX_ENV_BYTES, EnvName, SecretRef

#: More than any key or certificate chain needs; a file that is larger was put there by mistake.
MAX_VALUE_BYTES = 262_144


class SecretProblem(Exception):
    """This secret cannot be used; ``reason`` has the place, what was found and what is allowed, but not the name."""

    def __init__(self, reference: SecretRef, reason: str) -> None:
        super().__init__(f"secret {label(reference)}: {reason}")
        self.reference = reference
        self.reason = reason


class SecretMissing(SecretProblem):
    """The source was asked and has no such secret."""


class SourceDown(SecretProblem):
    """The source could not be asked: whether there is such a secret is not known."""


def label(reference: SecretRef) -> str:
    """A reference as people write it: ``<secret>/<key>``."""
    return f"{reference.name}/{reference.key}"


def value_fault(value: str) -> str:
    """What is wrong with a value, from whichever source; empty when nothing is."""
    if "\0" in value:
        return "its value has a NUL character, which no environment variable can hold"
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        return f"its value is not Unicode text (character {error.start})"
    if size > MAX_VALUE_BYTES:
        return f"its value has {size} bytes; allowed are {MAX_VALUE_BYTES}"
    return ""


def variable_fault(name: EnvName, value: str) -> str:
    """Why a value does not fit into this variable; empty when it does. The kernel counts the name and a NUL, too."""
    size = len(name) + len(value.encode()) + 2
    if size > MAX_ENV_BYTES:
        return f"its value is too long for {name}: {size} bytes with the name; allowed are {MAX_ENV_BYTES}"
    return ""
