"""What the device says about itself (DEV-4)."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping

from agent.version import VERSION
from agent.wire.messages import Facts

#: What this agent can be asked for.
CAPABILITIES = ["PodmanV0"]
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}
_MAX_LINE = 512


def gather(labels: Mapping[str, str], podman_version: str, boot_id: str) -> Facts:
    """Facts as of now; what cannot be read is left empty."""
    system = os.uname()
    return Facts(
        labels=dict(labels),
        capabilities=list(CAPABILITIES),
        architecture=architecture(),
        os=_os_name(),
        kernel=system.release[:_MAX_LINE],
        boot_id=boot_id[:_MAX_LINE],
        agent_version=VERSION,
        podman_version=podman_version[:_MAX_LINE],
    )


def architecture() -> str:
    """As releases and images name it."""
    machine = os.uname().machine
    return ARCHITECTURES.get(machine, machine)


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")[:_MAX_LINE]
    except OSError:
        return ""
