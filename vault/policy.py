"""What a secret may look like. Pure; no sentence here ever has a value in it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from agent.wire import names
from agent.wire.images import REGISTRY
from agent.wire.manifest import MAX_ENV_BYTES
from agent.wire.rules import Fault

MAX_KEYS = 64
#: The kernel's limit for ``NAME=value``, less the longest name, the sign and the closing NUL.
MAX_VALUE_BYTES = MAX_ENV_BYTES - 257
#: What the login for a registry is made of (AGT-15).
USERNAME, PASSWORD = "username", "password"
_NAME = "letters, digits, dots, dashes and underscores, at most 63, not beginning with a dot"
_NAMESPACE = "lower-case letters, digits and dashes, at most 63"


def name_faults(namespace: str, name: str) -> list[Fault]:
    """What is wrong with the name of a secret."""
    faults = []
    if not names.fits(names.DNS_LABEL, namespace):
        faults.append(Fault("namespace", f"found {namespace[:80]!r}; allowed: {_NAMESPACE}"))
    if not names.fits(names.SECRET_PART, name):
        faults.append(Fault("name", f"found {name[:80]!r}; allowed: {_NAME}"))
    return faults


def value_faults(values: Mapping[str, str]) -> list[Fault]:
    """What is wrong with new values, by key."""
    return [fault for key, value in values.items() for fault in _faults_of(key, value)]


def whole_faults(keys: Collection[str], registry: str) -> list[Fault]:
    """What is wrong with a secret that has these keys and is for this registry ("" for none)."""
    faults = []
    if not keys:
        faults.append(Fault("values", "is empty; needed: at least one key (to take the secret away, delete it)"))
    if len(keys) > MAX_KEYS:
        faults.append(Fault("values", f"would have {len(keys)} keys; allowed: {MAX_KEYS}"))
    if registry:
        faults += _registry_faults(keys, registry)
    return faults


def _faults_of(key: str, value: str) -> Iterator[Fault]:
    path = f"values.{key[:80]}"
    if not names.fits(names.SECRET_PART, key):
        yield Fault(path, f"is no name of a key; allowed: {_NAME}")
    if "\x00" in value:
        yield Fault(path, "contains a NUL character, which no environment can hold")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        yield Fault(path, "is no UTF-8 text: it has half of a surrogate pair")
        return
    if size > MAX_VALUE_BYTES:
        yield Fault(path, f"has {size} bytes; allowed: {MAX_VALUE_BYTES}")


def _registry_faults(keys: Collection[str], registry: str) -> Iterator[Fault]:
    if not names.fits(REGISTRY, registry) or len(registry) > 255:
        yield Fault("registry", f"found {registry[:80]!r}; allowed: host or host:port, as image references write it")
    missing = [key for key in (USERNAME, PASSWORD) if key not in keys]
    if missing:
        yield Fault("values", f"the login for a registry has username and password; missing: {', '.join(missing)}")
