"""Addresses under ``/api/v1/``."""

from django.urls import path

from tasks.api import runs

ONE = "namespaces/<str:namespace>/taskruns/<str:name>/"

urlpatterns = [
    path("taskruns/", runs.TaskRunList.as_view(), name="taskrun-list"),
    path(ONE, runs.TaskRunOne.as_view(), name="taskrun"),
    path(f"{ONE}targets/", runs.TaskRunTargets.as_view(), name="taskrun-targets"),
    path(f"{ONE}end/", runs.TaskRunEnd.as_view(), name="taskrun-end"),
    path(f"{ONE}recreate/", runs.TaskRunRecreate.as_view(), name="taskrun-recreate"),
    path(f"{ONE}give-up/", runs.TaskRunGiveUp.as_view(), name="taskrun-give-up"),
]
