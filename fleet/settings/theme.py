"""The admin's look and its side bar (django-unfold)."""

from __future__ import annotations

from typing import Any

from django.urls import reverse_lazy


def unfold() -> dict[str, Any]:
    """Unfold's settings."""
    return {
        "SITE_TITLE": "Harmony Fleet",
        "SITE_HEADER": "Harmony Fleet",
        "SITE_SUBHEADER": "Edge devices, proven rollouts",
        "SITE_SYMBOL": "hub",
        "SHOW_HISTORY": False,
        "SHOW_VIEW_ON_SITE": False,
        "DASHBOARD_CALLBACK": "fleet.overview.dashboard",
        "SIDEBAR": {"show_search": False, "show_all_applications": False, "navigation": _navigation()},
    }


def _navigation() -> list[dict[str, Any]]:
    return [
        {
            "title": "Fleet",
            "items": [
                _item("Overview", "monitoring", "admin:index"),
                _item("Devices", "developer_board", "admin:devices_device_changelist"),
                _item("Groups", "workspaces", "admin:devices_devicegroup_changelist"),
                _item("Enrolment tokens", "key", "admin:devices_enrolmenttoken_changelist"),
            ],
        },
        {
            "title": "Rollouts",
            "items": [_item("Deployments", "deployed_code", "admin:rollouts_deployment_changelist")],
        },
        {
            "title": "Operation",
            "separator": True,
            "items": [
                _item("Audit", "fact_check", "admin:core_auditentry_changelist"),
                _item("Events", "notifications", "admin:core_event_changelist"),
                _item("Users", "person", "admin:auth_user_changelist"),
            ],
        },
    ]


def _item(title: str, icon: str, view: str) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse_lazy(view)}
