"""What is known of a deployment's secrets at one moment, and how to keep their values out of sentences. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from agent.secrets.problems import label
from agent.wire.manifest import PodmanService, PodmanV0, SecretRef

#: Shorter ones are not replaced in a text: hardly a secret, and every other word would go with them.
SHORTEST_HIDDEN = 4


@dataclass(frozen=True, slots=True)
class Resolution:
    """``values`` and ``problems`` by reference; both may have one: the value kept from before, and why none came now.

    ``is_fresh``: the sources were asked for it just now. ``former``: values of before, to be hidden as well. No value
    shows in a ``repr``.
    """

    values: Mapping[SecretRef, str] = field(default_factory=dict, repr=False)
    problems: Mapping[SecretRef, str] = field(default_factory=dict)
    is_fresh: bool = True
    former: frozenset[tuple[SecretRef, str]] = field(default=frozenset(), repr=False)

    def hidden_in(self, text: str) -> str:
        """The text with ``[secret name/key]`` in place of each value, and of each line of one that has several."""
        for value, shown in sorted(self._shapes(), key=lambda shape: -len(shape[0])):
            text = text.replace(value, shown)
        return text

    def _shapes(self) -> Iterator[tuple[str, str]]:
        """A value as it is, line by line, and as a program quotes it."""
        for reference, value in (*self.values.items(), *self.former):
            quoted = (json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
            for shape in (value, *quoted, *(line.strip() for line in value.splitlines())):
                if len(shape.strip()) >= SHORTEST_HIDDEN:
                    yield shape, f"[secret {label(reference)}]"


#: For a deployment without secrets.
NONE = Resolution()


def containers(score: PodmanV0) -> Iterator[PodmanService]:
    """Init container and services."""
    if score.init_container:
        yield score.init_container
    yield from score.services


def references(score: PodmanV0) -> list[SecretRef]:
    """What a score needs, each once, in the order in which it is written."""
    return list(dict.fromkeys(item.secret for container in containers(score) for item in container.secret_env))
