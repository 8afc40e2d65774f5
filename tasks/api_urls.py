"""Addresses under ``/api/v1/``."""

from django.urls import path

from tasks.api import agent_releases, runs, schedules

ONE = "namespaces/<str:namespace>/taskruns/<str:name>/"
RELEASE = "namespaces/<str:namespace>/agentreleases/<str:name>/"
SCHEDULE = "namespaces/<str:namespace>/taskschedules/<str:name>/"

urlpatterns = [
    path("taskruns/", runs.TaskRunList.as_view(), name="taskrun-list"),
    path(ONE, runs.TaskRunOne.as_view(), name="taskrun"),
    path(f"{ONE}targets/", runs.TaskRunTargets.as_view(), name="taskrun-targets"),
    path(f"{ONE}end/", runs.TaskRunEnd.as_view(), name="taskrun-end"),
    path(f"{ONE}recreate/", runs.TaskRunRecreate.as_view(), name="taskrun-recreate"),
    path(f"{ONE}give-up/", runs.TaskRunGiveUp.as_view(), name="taskrun-give-up"),
    path("agentreleases/", agent_releases.AgentReleaseList.as_view(), name="agentrelease-list"),
    path(RELEASE, agent_releases.AgentReleaseOne.as_view(), name="agentrelease"),
    path(f"{RELEASE}targets/", agent_releases.AgentReleaseTargets.as_view(), name="agentrelease-targets"),
    path(f"{RELEASE}end/", agent_releases.AgentReleaseEnd.as_view(), name="agentrelease-end"),
    path(f"{RELEASE}recreate/", agent_releases.AgentReleaseRecreate.as_view(), name="agentrelease-recreate"),
    path(f"{RELEASE}give-up/", agent_releases.AgentReleaseGiveUp.as_view(), name="agentrelease-give-up"),
    path("taskschedules/", schedules.TaskScheduleList.as_view(), name="taskschedule-list"),
    path(SCHEDULE, schedules.TaskScheduleOne.as_view(), name="taskschedule"),
    path(f"{SCHEDULE}suspend/", schedules.TaskScheduleSuspend.as_view(), name="taskschedule-suspend"),
    path(f"{SCHEDULE}resume/", schedules.TaskScheduleResume.as_view(), name="taskschedule-resume"),
    path(f"{SCHEDULE}run/", schedules.TaskScheduleRun.as_view(), name="taskschedule-run"),
]
