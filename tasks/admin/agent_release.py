"""Agent releases: runs of another kind, on pages of their own (UPG-10)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AllValuesCheckboxFilter, ChoicesCheckboxFilter
from unfold.decorators import display

from tasks.admin.taskrun import OPERATIONS, TaskRunAdmin
from tasks.models import AgentRelease, Kind, TaskRun
from tasks.selectors.agents import release_spec

EXAMPLE = """\
apiVersion: fleet.nationtech.io/v1alpha1
kind: AgentRelease
metadata:
  name: agent-1.4.0
spec:
  allowedGroups: [lab]
  targetSelector:
    matchLabels:
      role: analyzer
  version: 1.4.0
  # From the shelf (Agent releases), one for each architecture.
  artifacts:
    - architecture: amd64
      url: https://fleet.example.com/api/agent/v1/releases/0000000000000000000000000000000000000000000000000000000000000000
      maxSize: 25000000
      sha256: "0000000000000000000000000000000000000000000000000000000000000000"
  # After these seconds nothing new begins; what has begun is never interrupted.
  deadlineSeconds: 86400
"""


@admin.register(AgentRelease)
class AgentReleaseAdmin(TaskRunAdmin):
    kind = Kind.AGENT_RELEASE
    operations = tuple(
        replace(each, permission=each.permission.replace("taskrun", "agentrelease")) for each in OPERATIONS
    )
    example = EXAMPLE
    list_display = ("run", "version", "phase_badge", "progress", "sentence", "deadline", "created")
    list_filter = (("phase", ChoicesCheckboxFilter), ("namespace", AllValuesCheckboxFilter))
    empty_title = "No agent version was rolled out yet"
    empty_text = "It brings an agent version to a set of devices, canaries first. Write its manifest here, or run"
    empty_template = "fleet/no_agentreleases.html"
    add_label = "New agent rollout"

    @display(description="Version")
    def version(self, run: TaskRun) -> SafeString:
        return format_html('<span class="hf-nowrap">{}</span>', run.spec["version"])

    def detail_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        spec = release_spec(obj)
        return {**super().detail_context(request, obj), "version": spec.version, "artifacts": spec.artifacts}
