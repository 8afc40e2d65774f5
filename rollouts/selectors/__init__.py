"""Every read of rollouts that is more than a get. List pages take a constant number of queries."""

from rollouts.selectors.lists import (
    current_revision,
    deployment_list,
    deployment_status,
    deployments_to_remove,
    devices_to_remove_it,
    images_of,
    live_revisions,
    phase_history,
    revisions_to_evaluate,
    target_row,
    targets_of,
)
from rollouts.selectors.matching import latecomers

__all__ = [
    "current_revision",
    "deployment_list",
    "deployment_status",
    "deployments_to_remove",
    "devices_to_remove_it",
    "images_of",
    "latecomers",
    "live_revisions",
    "phase_history",
    "revisions_to_evaluate",
    "target_row",
    "targets_of",
]
