"""Every write that concerns devices."""

from devices.services.enrolment import device_enrol
from devices.services.operating import (
    device_forget,
    device_reset_credential,
    device_set_canary,
    device_set_labels,
    group_create,
    group_delete,
    group_set_devices,
)
from devices.services.reports import drain_facts, sweep_connectivity
from devices.services.tokens import token_create, token_revoke

__all__ = [
    "device_enrol",
    "device_forget",
    "device_reset_credential",
    "device_set_canary",
    "device_set_labels",
    "drain_facts",
    "group_create",
    "group_delete",
    "group_set_devices",
    "sweep_connectivity",
    "token_create",
    "token_revoke",
]
