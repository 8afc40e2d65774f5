"""A deployment as the YAML that people read and edit."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from agent.wire.manifest import API_VERSION, DeploymentSpec
from rollouts.models import Deployment, Revision
from rollouts.selectors.matching import spec_of

_ORDER = ("allowedGroups", "targetSelector", "rollout", "score")


def text(deployment: Deployment, revision: Revision) -> str:
    """The manifest that would make this revision again; defaults are left out."""
    metadata: dict[str, Any] = {"name": deployment.name, "namespace": deployment.namespace}
    metadata |= {"labels": deployment.labels} if deployment.labels else {}
    metadata |= {"annotations": deployment.annotations} if deployment.annotations else {}
    return dump(metadata, spec_of(revision))


def dump(metadata: dict[str, Any], spec: DeploymentSpec) -> str:
    """YAML in the order in which people write a manifest."""
    built = msgspec.to_builtins(spec)
    built["rollout"] = {"strategy": spec.rollout.strategy}
    ordered = {key: built[key] for key in _ORDER if key in built}
    manifest = {"apiVersion": API_VERSION, "kind": "Deployment", "metadata": metadata, "spec": ordered}
    return yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


class _Dumper(yaml.SafeDumper):
    """No aliases (the door refuses them), and texts of several lines as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)
