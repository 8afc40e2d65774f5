"""From bytes to decoded manifests, or all that is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from agent.wire import canonical, rules
from agent.wire.manifest import API_VERSION, KINDS, Manifest
from agent.wire.rules import Fault
from fleet.core.door import loose, reading, schema
from fleet.core.errors import Invalid


class ManifestInvalid(Invalid):
    """A manifest was refused; ``faults`` has each reason with its path."""

    title = "Invalid manifest"

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(str(fault) for fault in faults), faults)


class ManifestUnreadable(ManifestInvalid):
    """The text is no YAML or JSON that we take; what it would say isn't known."""

    status = 400
    title = "Unreadable manifest"


@dataclass(frozen=True, slots=True)
class Admitted:
    """A manifest that may be acted upon: typed, its spec as plain data without defaults, and that spec's hash."""

    manifest: Manifest
    spec: dict[str, Any]
    spec_hash: str

    @property
    def full_name(self) -> str:
        """``namespace/name``; the name alone of what has no namespace."""
        metadata = self.manifest.metadata
        return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


def admit(data: bytes | str) -> list[Admitted]:
    """The manifests of a YAML or JSON text, one per document.

    Raises:
        ManifestInvalid: with every fault of every document; nothing of the text is admitted then.
        ManifestUnreadable: a ManifestInvalid whose text can't be read at all.
    """
    try:
        documents = reading.documents(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
    except reading.Unreadable as error:
        raise ManifestUnreadable([Fault(error.path, str(error))]) from None
    faults: list[Fault] = []
    admitted: list[Admitted] = []
    for index, document in enumerate(documents):
        found = _admit_one(document)
        if isinstance(found, Admitted):
            admitted.append(found)
        else:
            faults += _numbered(found, index, len(documents))
    faults += _twice(admitted)
    if faults:
        raise ManifestInvalid(schema.capped(faults))
    return admitted


def _admit_one(document: Any) -> Admitted | list[Fault]:
    if faults := _not_ours(document):
        return faults
    kind = document["kind"]
    if misshapen := schema.check(document, kind):
        if len(misshapen) > schema.MAX_FAULTS:
            return misshapen  # what else is broken isn't known, so no rule could be trusted
        broken = [fault.path for fault in misshapen]
        return [*misshapen, *loose.sound(rules.check(loose.build(KINDS[kind], document)), broken)]
    manifest = msgspec.convert(document, KINDS[kind])
    if faults := rules.check(manifest):
        return faults
    return Admitted(manifest, msgspec.to_builtins(manifest.spec), canonical.digest(manifest.spec))


def _not_ours(document: Any) -> list[Fault]:
    """What keeps us from even choosing a schema: no object, another group, another kind."""
    if not isinstance(document, dict):
        return [Fault("", f"found {schema.type_name(document)}; a manifest is an object with apiVersion and kind")]
    return [*_wrong_word(document, "apiVersion", [API_VERSION]), *_wrong_word(document, "kind", list(KINDS))]


def _wrong_word(document: dict[str, Any], name: str, allowed: list[str]) -> Iterator[Fault]:
    if name not in document:
        yield Fault(name, f"is missing; allowed: {', '.join(allowed)}")
    elif not isinstance(document[name], str) or document[name] not in allowed:
        yield Fault(name, f"found {schema.shown(document[name])}; allowed: {', '.join(allowed)}")


def _numbered(faults: list[Fault], index: int, total: int) -> list[Fault]:
    if total == 1:
        return faults
    return [Fault(f"document {index + 1}: {fault.path}".rstrip(": "), fault.message) for fault in faults]


def _twice(admitted: list[Admitted]) -> Iterator[Fault]:
    seen: set[tuple[str, str, str]] = set()
    for each in admitted:
        metadata = each.manifest.metadata
        identity = (each.manifest.kind, metadata.namespace, metadata.name)
        if identity in seen:
            yield Fault("metadata.name", f"{' '.join(identity)} is in this text twice; allowed: once")
        seen.add(identity)
