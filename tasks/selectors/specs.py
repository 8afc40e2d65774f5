"""A run's spec as its type."""

from __future__ import annotations

import msgspec

from agent.wire.manifest import AgentReleaseSpec, TaskRunSpec
from tasks.models import Kind, TaskRun


def spec_of(run: TaskRun) -> TaskRunSpec | AgentReleaseSpec:
    """What the run was applied with."""
    if run.kind == Kind.AGENT_RELEASE:
        return msgspec.convert(run.spec, AgentReleaseSpec)
    return msgspec.convert(run.spec, TaskRunSpec)
