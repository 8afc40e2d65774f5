"""Every write to deployments, revisions and targets."""

from rollouts.services.applying import Applied, deployment_apply, deployment_retarget
from rollouts.services.ending import (
    deployment_delete,
    deployment_evaluate_removal,
    deployment_forget_device,
    rollout_end,
)
from rollouts.services.evaluation import revision_evaluate
from rollouts.services.logs import logs_answer, logs_request, logs_tidy
from rollouts.services.passes import count_latecomers, drain_deployments, evaluate_touched, sweep

__all__ = [
    "Applied",
    "count_latecomers",
    "deployment_apply",
    "deployment_delete",
    "deployment_evaluate_removal",
    "deployment_forget_device",
    "deployment_retarget",
    "drain_deployments",
    "evaluate_touched",
    "logs_answer",
    "logs_request",
    "logs_tidy",
    "revision_evaluate",
    "rollout_end",
    "sweep",
]
