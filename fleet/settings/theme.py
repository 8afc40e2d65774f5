"""The admin's look and its side bar (django-unfold)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy


def unfold() -> dict[str, Any]:
    """Unfold's settings."""
    return {
        "SITE_TITLE": "Harmony Fleet",
        "SITE_HEADER": "Harmony Fleet",
        "SITE_SUBHEADER": "Edge devices, proven rollouts",
        "SITE_URL": reverse_lazy("admin:index"),
        "SITE_ICON": lambda request: static("fleet/logo.svg"),
        "SITE_FAVICONS": [
            {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("fleet/logo.svg")},
        ],
        "SHOW_HISTORY": False,
        "SHOW_VIEW_ON_SITE": False,
        "STYLES": [lambda request: static("fleet/fleet.css")],
        "SCRIPTS": [],
        "BORDER_RADIUS": "8px",
        "COLORS": {"primary": PRIMARY},
        "DASHBOARD_CALLBACK": "fleet.overview.dashboard",
        "SIDEBAR": {"show_search": False, "show_all_applications": False, "navigation": _navigation()},
    }


#: A blue whose 600 carries white text with a contrast above 5:1.
PRIMARY = {
    "50": "oklch(97% .014 254.604)",
    "100": "oklch(93.2% .032 255.585)",
    "200": "oklch(88.2% .059 254.128)",
    "300": "oklch(80.9% .105 251.813)",
    "400": "oklch(70.7% .165 254.624)",
    "500": "oklch(62.3% .214 259.815)",
    "600": "oklch(52% .22 262.9)",
    "700": "oklch(46% .21 264)",
    "800": "oklch(42.4% .199 265.638)",
    "900": "oklch(37.9% .146 265.522)",
    "950": "oklch(28.2% .091 267.935)",
}


def _navigation() -> list[dict[str, Any]]:
    return [
        {
            "title": "Fleet",
            "items": [
                _item("Overview", "monitoring", "admin:index"),
                _item("Devices", "developer_board", "admin:devices_device_changelist", "devices.view_device"),
                _item("Groups", "workspaces", "admin:devices_devicegroup_changelist", "devices.view_devicegroup"),
                _item(
                    "Enrolment tokens", "key", "admin:devices_enrolmenttoken_changelist", "devices.view_enrolmenttoken"
                ),
            ],
        },
        {
            "title": "Rollouts",
            "items": _rollouts(),
        },
        {
            "title": "Operation",
            "separator": True,
            "items": [
                _item("Events", "notifications", "admin:core_event_changelist", "core.view_event"),
                _item("Audit", "fact_check", "admin:core_auditentry_changelist", "core.view_auditentry"),
                _item("Users", "person", "admin:auth_user_changelist", "auth.view_user"),
                _item("Roles", "shield_person", "admin:auth_group_changelist", "auth.view_group"),
            ],
        },
    ]


def _rollouts() -> list[dict[str, Any]]:
    return [
        _item("Deployments", "deployed_code", "admin:rollouts_deployment_changelist", "rollouts.view_deployment"),
        _item("Task runs", "system_update", "admin:tasks_taskrun_changelist", "tasks.view_taskrun"),
        _item(
            "Agent rollouts",
            "published_with_changes",
            "admin:tasks_agentrelease_changelist",
            "tasks.view_agentrelease",
        ),
        _item("Schedules", "event_repeat", "admin:tasks_taskschedule_changelist", "tasks.view_taskschedule"),
        _item("Attempts", "timeline", "admin:upgrades_attempt_changelist", "upgrades.view_attempt"),
        _item(
            "Agent releases",
            "inventory_2",
            "admin:releases_shelvedrelease_changelist",
            "releases.view_shelvedrelease",
        ),
        _item(
            "Agent upgrades",
            "deployed_code_update",
            "admin:upgrades_desiredagent_changelist",
            "upgrades.view_desiredagent",
        ),
        _item("Secrets", "lock", "admin:vault_secret_changelist", "vault.view_secret"),
    ]


def _item(title: str, icon: str, view: str, permission: str = "") -> dict[str, Any]:
    item: dict[str, Any] = {"title": title, "icon": icon, "link": reverse_lazy(view)}
    return item | {"permission": _needs(permission)} if permission else item


def _needs(permission: str) -> Callable[[HttpRequest], bool]:
    def allowed(request: HttpRequest) -> bool:
        return request.user.has_perm(permission)

    return allowed
