"""Manifests as the YAML that people read and edit."""

from __future__ import annotations

from typing import Any

import yaml

from agent.wire.manifest import API_VERSION


def as_yaml(kind: str, named: Any, spec: dict[str, Any]) -> str:
    """The manifest of an object that has a name, namespace, labels and annotations; keys keep their order."""
    metadata: dict[str, Any] = {"name": named.name, "namespace": named.namespace}
    metadata |= {"labels": named.labels} if named.labels else {}
    metadata |= {"annotations": named.annotations} if named.annotations else {}
    return dump(kind, metadata, spec)


def dump(kind: str, metadata: dict[str, Any], spec: dict[str, Any]) -> str:
    """YAML in the order in which people write a manifest."""
    manifest = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
    return yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


class _Dumper(yaml.SafeDumper):
    """No aliases (the door refuses them), and texts of several lines as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)
