"""Where secrets come from: the device's own directory first, then the control plane (AGT-10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.control import ControlError
from agent.secrets import directory
from agent.secrets.problems import SecretMissing, SecretProblem, SourceDown, label, value_fault
from agent.wire.manifest import SecretRef
from agent.wire.messages import SecretsReply, SecretsRequest

#: As many as one request may have (:class:`~agent.wire.messages.SecretsRequest`).
MOST_AT_ONCE = 512


@dataclass(slots=True)
class Answers:
    """Each reference is in exactly one: its value, what is wrong with it, or why its source could not be asked."""

    values: dict[SecretRef, str] = field(default_factory=dict, repr=False)
    problems: dict[SecretRef, str] = field(default_factory=dict)
    unknown: dict[SecretRef, str] = field(default_factory=dict)


class Sources:
    """``ask_control`` is the control plane's call; it is made for what the directory does not have, and only then."""

    def __init__(self, folder: Path, ask_control: Callable[[SecretsRequest], SecretsReply]) -> None:
        self._folder = folder
        self._ask_control = ask_control

    def ask(self, uid: str, references: Sequence[SecretRef]) -> Answers:
        """Look for the secrets of the deployment ``uid``; a file wins over a secret of the same name elsewhere."""
        answers = Answers()
        missing = []
        for reference in references:
            try:
                answers.values[reference] = directory.read(self._folder, reference)
            except SecretMissing:
                missing.append(reference)
            except SourceDown as error:
                answers.unknown[reference] = error.reason
            except SecretProblem as error:
                answers.problems[reference] = error.reason
        for part in _parts(missing):
            self._from_control(uid, part, answers)
        return answers

    def _from_control(self, uid: str, references: list[SecretRef], answers: Answers) -> None:
        try:
            reply = self._ask_control(SecretsRequest(deployment=uid, references=references))
        except ControlError as error:
            for reference in references:
                answers.unknown[reference] = f"{self._nothing_at(reference)}, and {error}"
            return
        given = {(found.name, found.key): found.value for found in reply.values}
        for reference in references:
            value = given.get((reference.name, reference.key))
            if value is None:
                hint = "and the control plane has no such secret for this device"
                answers.problems[reference] = f"{self._nothing_at(reference)}, {hint}"
            elif fault := value_fault(value):
                answers.problems[reference] = f"from the control plane: {fault}"
            else:
                answers.values[reference] = value

    def _nothing_at(self, reference: SecretRef) -> str:
        return f"{self._folder}/{label(reference)} does not exist"


def _parts(references: list[SecretRef]) -> Iterator[list[SecretRef]]:
    for start in range(0, len(references), MOST_AT_ONCE):
        yield references[start : start + MOST_AT_ONCE]
