"""The three roles of ADM-2, as Django groups.

Kept after every migrate, not by a migration: Django makes an app's permissions only once all migrations have run, and
apps that come later bring new ones. What an app's models are called is said here by label, so that nothing is imported
from the apps above.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.apps import AppConfig, apps
from django.db import DEFAULT_DB_ALIAS, router

VIEWER, OPERATOR, ADMINISTRATOR = "viewer", "operator", "administrator"
DESCRIPTIONS: Mapping[str, str] = {
    VIEWER: "Sees everything, changes nothing.",
    OPERATOR: "Applies, retargets, ends and deletes deployments and task runs for the groups that they may deploy to; "
    "looks after devices and secrets.",
    ADMINISTRATOR: "Does everything: also users, roles, groups and enrolment tokens, and deploys to any group.",
}

#: Apps whose objects people see and change; Django's own tables beside them are nobody's work.
APPS = ("core", "devices", "vault", "rollouts", "tasks", "upgrades", "releases", "auth")
#: Shown to administrators only: who has which rights, and what proves them.
_RIGHTS = ("user", "group", "permission", "credential")
_OPERATED = frozenset(
    {
        "rollouts.add_deployment",
        "rollouts.change_deployment",
        "rollouts.delete_deployment",
        "rollouts.retarget_deployment",
        "rollouts.end_deployment",
        "rollouts.forget_device_deployment",
        "rollouts.read_logs",
        "tasks.add_taskrun",
        "tasks.change_taskrun",
        "tasks.delete_taskrun",
        "tasks.end_taskrun",
        "tasks.add_agentrelease",
        "tasks.change_agentrelease",
        "tasks.delete_agentrelease",
        "tasks.end_agentrelease",
        "tasks.add_taskschedule",
        "tasks.change_taskschedule",
        "tasks.delete_taskschedule",
        "upgrades.change_desiredagent",
        "upgrades.give_up_attempt",
        "releases.add_shelvedrelease",
        "releases.delete_shelvedrelease",
        "devices.change_device",
        "devices.delete_device",
        "vault.add_secret",
        "vault.change_secret",
        "vault.delete_secret",
    }
)


def _viewer(app: str, codename: str) -> bool:
    return codename.startswith("view_") and codename.removeprefix("view_") not in _RIGHTS


def _operator(app: str, codename: str) -> bool:
    return _viewer(app, codename) or f"{app}.{codename}" in _OPERATED


def _administrator(app: str, codename: str) -> bool:
    return True


_RULES: Mapping[str, Callable[[str, str], bool]] = {
    VIEWER: _viewer,
    OPERATOR: _operator,
    ADMINISTRATOR: _administrator,
}


def keep_roles(sender: AppConfig, using: str = DEFAULT_DB_ALIAS, **_: Any) -> None:
    """Give the roles their permissions of the app that was just migrated, and take away those that no rule gives.

    A receiver of ``post_migrate``; permissions of the app exist by then, because ``django.contrib.auth`` is installed
    before this app. Running it again changes nothing.
    """
    if sender.label not in APPS or not apps.is_installed("django.contrib.auth"):
        return
    group_model, permission_model = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    if not router.allow_migrate_model(using, group_model):
        return
    permissions = permission_model.objects.using(using).filter(content_type__app_label=sender.label)
    wanted = list(permissions)
    for name, rule in _RULES.items():
        role, _created = group_model.objects.using(using).get_or_create(name=name)
        given = {each.pk for each in wanted if rule(sender.label, each.codename)}
        has = set(role.permissions.filter(content_type__app_label=sender.label).values_list("pk", flat=True))
        role.permissions.add(*(given - has))
        role.permissions.remove(*(has - given))
