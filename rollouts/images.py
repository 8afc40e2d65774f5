"""What the tags of a revision stand for (DEP-18). Pure.

A reference without a digest is resolved once in a revision: to the digest that ran on the device which proved it first.
*Pins* are kept with the revision as ``{reference: {"digest": …, "device": …, "note": …}}``; ``note`` is one sentence
where the choice was not obvious.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.wire.manifest import PodmanService, PodmanV0

Pins = dict[str, dict[str, str]]

#: What a device says becomes what others run, so nothing but a digest is taken from it.
_DIGEST = re.compile("sha256:[a-f0-9]{64}")
#: Podman's name for images that were built on the device: no other device could pull the digest.
_LOCAL = "localhost/"


@dataclass(frozen=True, slots=True)
class Proof:
    """The digests that run on a device which converged, by container name."""

    device: str
    images: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Standing:
    """A reference without a digest and what it stands for; ``digest`` and ``device`` are empty while that is open."""

    reference: str
    digest: str = ""
    device: str = ""
    note: str = ""


def tags_of(score: PodmanV0) -> list[str]:
    """The references without a digest, each once, in the manifest's order."""
    return list(dict.fromkeys(each.image for each in _containers(score) if "@" not in each.image))


def open_tags(score: PodmanV0, pins: Pins) -> list[str]:
    """The references that a proof could still resolve."""
    return [tag for tag in tags_of(score) if tag not in pins and not tag.startswith(_LOCAL)]


def resolve(score: PodmanV0, pins: Pins, proofs: Sequence[Proof]) -> Pins:
    """Pins for what is open, from the first proof that has a digest for it. What is pinned stays as it is."""
    found: Pins = {}
    for tag in open_tags(score, pins):
        pin = next((pin for proof in proofs if (pin := _pin(score, tag, proof))), None)
        if pin is not None:
            found[tag] = pin
    return found


def _pin(score: PodmanV0, tag: str, proof: Proof) -> dict[str, str] | None:
    """The digest of the first service with this tag; that of the init container only when no service has it.

    On one device they differ when the tag moved between two pulls.
    """
    users = [each.name for each in _containers(score) if each.image == tag]
    digests = {name: proof.images[name] for name in users if _DIGEST.fullmatch(proof.images.get(name, ""))}
    if not digests:
        return None
    chosen = next(iter(digests))
    differs = len(set(digests.values())) > 1
    note = f"containers of {proof.device} ran different digests of it; that of {chosen} counts" if differs else ""
    return {"digest": digests[chosen], "device": proof.device, "note": note}


def carried_over(before: PodmanV0, after: PodmanV0, pins: Pins) -> Pins:
    """The pins that the next revision begins with: those of containers whose definition stays as it is.

    Such a container keeps running (AGT-4, DEP-9), so its image must not change under it. The others' are resolved anew.
    """
    unchanged = list(_containers(before))
    kept = {each.image for each in _containers(after) if each in unchanged}
    return {tag: pin for tag, pin in pins.items() if tag in kept}


def digests(pins: Pins) -> dict[str, str]:
    """Digest by reference, as devices are told."""
    return {tag: pin["digest"] for tag, pin in pins.items()}


def expected(score: PodmanV0, pins: Pins) -> dict[str, str]:
    """The digest by container name that a converged device runs; only of containers with a pinned tag."""
    return {each.name: pins[each.image]["digest"] for each in _containers(score) if each.image in pins}


def standings(score: PodmanV0, pins: Pins) -> list[Standing]:
    """Every reference without a digest, with what is known of it."""
    return [_standing(tag, pins.get(tag)) for tag in tags_of(score)]


def _standing(tag: str, pin: dict[str, str] | None) -> Standing:
    if pin is not None:
        return Standing(tag, pin["digest"], pin["device"], pin["note"])
    if tag.startswith(_LOCAL):
        return Standing(tag, note="no registry has it, so each device runs its own")
    return Standing(tag)


def _containers(score: PodmanV0) -> Iterator[PodmanService]:
    """Services first: they go on running, while an init container has run."""
    yield from score.services
    if score.init_container is not None:
        yield score.init_container
