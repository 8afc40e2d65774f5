"""What every command shares: the options before its name, and the client that they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from fleet.ctl import config
from fleet.ctl.client import Client, segment

DEFAULT_NAMESPACE = "default"

Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the object.")]


@dataclass(slots=True)
class Options:
    """From the command line; empty means not given."""

    server: str = ""
    ca_file: str = ""


def client(context: typer.Context) -> Client:
    """The client for this call of fleetctl."""
    options: Options = context.ensure_object(Options)
    return Client(config.load(server=options.server, ca_file=options.ca_file))


def deployment_path(name: str, namespace: str) -> str:
    """The address of a deployment; ``namespace/name`` is taken too."""
    namespace, name = _parts(name, namespace)
    return f"namespaces/{segment(namespace)}/deployments/{segment(name)}/"


def taskrun_path(name: str, namespace: str) -> str:
    """The address of a task run; ``namespace/name`` is taken too."""
    namespace, name = _parts(name, namespace)
    return f"namespaces/{segment(namespace)}/taskruns/{segment(name)}/"


def agentrelease_path(name: str, namespace: str) -> str:
    """The address of an agent release; ``namespace/name`` is taken too."""
    namespace, name = _parts(name, namespace)
    return f"namespaces/{segment(namespace)}/agentreleases/{segment(name)}/"


def schedule_path(name: str, namespace: str) -> str:
    """The address of a task schedule; ``namespace/name`` is taken too."""
    namespace, name = _parts(name, namespace)
    return f"namespaces/{segment(namespace)}/taskschedules/{segment(name)}/"


def secret_path(name: str, namespace: str) -> str:
    """The address of a secret; ``namespace/name`` is taken too."""
    namespace, name = _parts(name, namespace)
    return f"namespaces/{segment(namespace)}/secrets/{segment(name)}/"


def full_name(name: str, namespace: str) -> str:
    """``namespace/name``."""
    return "/".join(_parts(name, namespace))


def _parts(name: str, namespace: str) -> tuple[str, str]:
    before, slash, after = name.partition("/")
    return (before, after) if slash else (namespace, name)
