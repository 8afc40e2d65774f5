"""Agent releases: runs of another kind, under their own addresses and permissions (UPG-10)."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema, extend_schema_view

from devices.api.forms import OneDevice
from tasks.api import runs
from tasks.api.forms import AgentReleaseListed, AgentReleaseObject, TaskTargetRow
from tasks.models import Kind

VIEW = {"GET": ["tasks.view_agentrelease"]}
_CHANGED = {"request": None, "responses": AgentReleaseObject}


class _OfAgents:
    """What makes a view of runs one of agent releases."""

    kind = Kind.AGENT_RELEASE
    shape = AgentReleaseObject


@extend_schema_view(get=extend_schema(operation_id="agentrelease_list", responses=AgentReleaseListed(many=True)))
class AgentReleaseList(_OfAgents, runs.TaskRunList):
    serializer_class = AgentReleaseListed
    required_permissions = VIEW


@extend_schema_view(
    get=extend_schema(operation_id="agentrelease_get", responses=AgentReleaseObject),
    delete=extend_schema(operation_id="agentrelease_delete", request=None, responses={204: None}),
)
class AgentReleaseOne(_OfAgents, runs.TaskRunOne):
    serializer_class = AgentReleaseObject
    required_permissions = {**VIEW, "DELETE": ["tasks.delete_agentrelease"]}


@extend_schema_view(get=extend_schema(operation_id="agentrelease_targets", responses=TaskTargetRow(many=True)))
class AgentReleaseTargets(_OfAgents, runs.TaskRunTargets):
    required_permissions = VIEW


@extend_schema_view(post=extend_schema(operation_id="agentrelease_end", **_CHANGED))
class AgentReleaseEnd(_OfAgents, runs.TaskRunEnd):
    required_permissions = {"POST": ["tasks.end_agentrelease"]}


@extend_schema_view(
    post=extend_schema(operation_id="agentrelease_recreate", request=None, responses={201: AgentReleaseObject})
)
class AgentReleaseRecreate(_OfAgents, runs.TaskRunRecreate):
    required_permissions = {"POST": ["tasks.add_agentrelease"]}


@extend_schema_view(
    post=extend_schema(operation_id="agentrelease_give_up", request=OneDevice, responses=AgentReleaseObject)
)
class AgentReleaseGiveUp(_OfAgents, runs.TaskRunGiveUp):
    pass
