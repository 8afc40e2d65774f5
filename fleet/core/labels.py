"""Which labels a selector selects (DEP-6): Kubernetes' meaning, pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agent.wire.manifest import LabelSelector, SelectorRequirement


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether every part of the selector holds. ``NotIn`` holds for a missing key too, as in Kubernetes."""
    return all(labels.get(key) == value for key, value in selector.matchLabels.items()) and all(
        _holds(requirement, labels) for requirement in selector.matchExpressions
    )


def _holds(requirement: SelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    if requirement.operator == "In":
        return value is not None and value in requirement.values
    if requirement.operator == "NotIn":
        return value is None or value not in requirement.values
    return (value is not None) == (requirement.operator == "Exists")


def explain(selector: LabelSelector) -> str:
    """The selector in kubectl's short form: ``role=analyzer,tier in (a,b),!old``."""
    return ",".join(_parts(selector))


def _parts(selector: LabelSelector) -> Iterator[str]:
    for key, value in selector.matchLabels.items():
        yield f"{key}={value}"
    for requirement in selector.matchExpressions:
        if requirement.operator in ("In", "NotIn"):
            word = "in" if requirement.operator == "In" else "notin"
            yield f"{requirement.key} {word} ({','.join(requirement.values)})"
        else:
            yield requirement.key if requirement.operator == "Exists" else f"!{requirement.key}"
