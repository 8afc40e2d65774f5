"""What a cluster is told of each kind: names, columns, schemas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from agent.wire import names
from agent.wire.manifest import API_VERSION, DeploymentSpec, DeviceSpec, TaskRunSpec
from fleet.kube.crds.status import DeploymentStatus, DeviceStatus, TaskRunStatus
from fleet.kube.crds.structural import KEEP_UNKNOWN, Schema, structural

GROUP, _, VERSION = API_VERSION.partition("/")
#: ``kubectl get fleet`` lists all kinds.
CATEGORY = "fleet"
_HEAD = "# Written by: manage.py crds --folder deploy/kubernetes/crds\n"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of ``kubectl get``; a ``wide`` one shows with ``-o wide`` only."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False

    def as_object(self) -> dict[str, Any]:
        shown = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return {**shown, "priority": 1} if self.wide else shown


@dataclass(frozen=True, slots=True)
class Definition:
    """One kind; ``plural`` is its name in addresses."""

    kind: str
    plural: str
    short: str
    namespaced: bool
    spec: type
    status: type
    columns: tuple[Column, ...]
    description: str
    name_schema: Schema | None = None

    @property
    def name(self) -> str:
        return f"{self.plural}.{GROUP}"


_AGE = Column("Age", ".metadata.creationTimestamp", "date")
_READY = Column("Ready", '.status.conditions[?(@.type=="Ready")].status')
_PHASE = Column("Phase", ".status.phase")
_MESSAGE = Column("Message", ".status.message")


def _counted(name: str, key: str, *, wide: bool = False) -> Column:
    return Column(name, f".status.counts.{key}", "integer", wide)


KINDS = (
    Definition(
        kind="Deployment",
        plural="deployments",
        short="fleetdep",
        namespaced=True,
        spec=DeploymentSpec,
        status=DeploymentStatus,
        description="Containers that devices of the fleet shall run.",
        columns=(
            _PHASE,
            _READY,
            _counted("Devices", "matched"),
            _counted("Converged", "converged"),
            _counted("Failed", "failed"),
            _counted("Released", "released", wide=True),
            _counted("Offline", "offline", wide=True),
            Column("Since", ".status.since", "date", wide=True),
            _MESSAGE,
            _AGE,
        ),
    ),
    Definition(
        kind="TaskRun",
        plural="taskruns",
        short="fleettask",
        namespaced=True,
        spec=TaskRunSpec,
        status=TaskRunStatus,
        description="A task that devices of the fleet carry out once.",
        columns=(
            _PHASE,
            _READY,
            _counted("Devices", "matched"),
            _counted("Completed", "completed"),
            _counted("Failed", "failed"),
            _counted("Released", "released", wide=True),
            Column("Deadline", ".status.deadline", wide=True),
            _MESSAGE,
            _AGE,
        ),
    ),
    Definition(
        kind="Device",
        plural="devices",
        short="fleetdev",
        namespaced=False,
        spec=DeviceSpec,
        status=DeviceStatus,
        description="An enrolled device of the fleet.",
        name_schema={"type": "string", "pattern": names.DNS_LABEL, "maxLength": 63},
        columns=(
            Column("Connectivity", ".status.connectivity"),
            _READY,
            Column("Agent", ".status.agentVersion"),
            Column("Last seen", ".status.lastSeen", "date"),
            Column("Wanted agent", ".spec.agentUpgrade.version", wide=True),
            Column("Updater", ".status.updaterVersion", wide=True),
            Column("Architecture", ".status.architecture", wide=True),
            Column("OS", ".status.os", wide=True),
            _MESSAGE,
            _AGE,
        ),
    ),
)


def definitions() -> list[dict[str, Any]]:
    """The CustomResourceDefinitions as objects (apiextensions.k8s.io/v1)."""
    return [_definition(kind) for kind in KINDS]


def yaml_files() -> dict[str, str]:
    """The same as YAML, by the name of the file that has it."""
    return {f"{each['spec']['names']['plural']}.yaml": _HEAD + _yaml(each) for each in definitions()}


def _yaml(value: Any) -> str:
    text: str = yaml.dump(value, Dumper=_WithoutAliases, sort_keys=False, width=110, allow_unicode=True)
    return text


class _WithoutAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _definition(kind: Definition) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.name},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.kind.lower(),
                "shortNames": [kind.short],
                "categories": [CATEGORY],
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [column.as_object() for column in kind.columns],
                    "schema": {"openAPIV3Schema": _schema(kind)},
                }
            ],
        },
    }


def _schema(kind: Definition) -> Schema:
    metadata: Schema = {"type": "object"}
    if kind.name_schema:
        metadata["properties"] = {"name": kind.name_schema}
    return {
        "type": "object",
        "description": kind.description,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": metadata,
            "spec": structural(kind.spec),
            "status": structural(kind.status),
        },
        **KEEP_UNKNOWN,
    }
