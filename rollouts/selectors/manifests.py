"""A deployment as the YAML that people read and edit."""

from __future__ import annotations

from typing import Any

import msgspec

from agent.wire.manifest import DeploymentSpec
from fleet.core import manifest_text
from rollouts.models import Deployment, Revision
from rollouts.selectors.matching import spec_of

_ORDER = ("allowedGroups", "targetSelector", "rollout", "score")


def text(deployment: Deployment, revision: Revision) -> str:
    """The manifest that would make this revision again; defaults are left out."""
    return manifest_text.as_yaml("Deployment", deployment, _ordered(spec_of(revision)))


def dump(metadata: dict[str, Any], spec: DeploymentSpec) -> str:
    """YAML in the order in which people write a manifest."""
    return manifest_text.dump("Deployment", metadata, _ordered(spec))


def _ordered(spec: DeploymentSpec) -> dict[str, Any]:
    built = msgspec.to_builtins(spec)
    built["rollout"] = {"strategy": spec.rollout.strategy}
    return {key: built[key] for key in _ORDER if key in built}
