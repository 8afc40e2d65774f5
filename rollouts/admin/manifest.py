"""A deployment as the YAML that people edit."""

from __future__ import annotations

import difflib
import re
from typing import Any

import msgspec
import yaml

from agent.wire.manifest import API_VERSION, DeploymentSpec
from rollouts.models import Deployment, Revision
from rollouts.selectors.matching import spec_of

#: Above this size a fault is shown without its line: finding it would take longer than the reader's patience.
MAX_LOCATED = 65_536
_ORDER = ("allowedGroups", "targetSelector", "rollout", "score")
_PART = re.compile(r"\[(\d+)\]|([^.\[\]]+)")

EXAMPLE = """\
apiVersion: fleet.nationtech.io/v1alpha1
kind: Deployment
metadata:
  name: my-app
spec:
  allowedGroups: [lab]
  targetSelector:
    matchLabels:
      role: analyzer
  rollout:
    strategy: Immediate
  score:
    type: PodmanV0
    data:
      services:
        - name: my-app
          image: registry.example.com/my-app:1.0
          ports: ["8080:8080"]
          restart_policy: unless-stopped
"""


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


def difference(before: str, after: str) -> list[tuple[str, str]]:
    """A unified difference as (kind, line), kind being add, remove, place or same."""
    kinds = {"+": "add", "-": "remove", "@": "place"}
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=3))[2:]
    return [(kinds.get(line[:1], "same"), line) for line in lines]


def line_of(source: str, path: str, document: int = 0) -> int | None:
    """The line (from 1) of the deepest part of ``path`` that the YAML text has; None when it cannot be told."""
    if len(source) > MAX_LOCATED:
        return None
    try:
        nodes = list(yaml.compose_all(source, Loader=yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError):
        return None
    if document >= len(nodes) or nodes[document] is None:
        return None
    return _deepest(nodes[document], path)


def _deepest(node: yaml.Node, path: str) -> int:
    line = node.start_mark.line
    for index, key in _PART.findall(path):
        step = _item(node, int(index)) if index else _value(node, key)
        if step is None:
            break
        line, node = step
    return line + 1


def _item(node: yaml.Node, index: int) -> tuple[int, yaml.Node] | None:
    if not isinstance(node, yaml.SequenceNode) or index >= len(node.value):
        return None
    return node.value[index].start_mark.line, node.value[index]


def _value(node: yaml.Node, key: str) -> tuple[int, yaml.Node] | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next(((name.start_mark.line, value) for name, value in node.value if name.value == key), None)
