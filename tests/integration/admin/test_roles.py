"""Who may do what (ADM-2)."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.test import Client

from devices.models import Device
from fleet.core import roles
from fleet.core.models import AuditEntry
from tests.integration.admin.pages import at, words

pytestmark = [pytest.mark.django_db, pytest.mark.clause("ADM-2")]


def permissions(role: str) -> set[str]:
    given = Permission.objects.filter(group__name=role).select_related("content_type")
    return {f"{each.content_type.app_label}.{each.codename}" for each in given}


def test_migrating_makes_three_roles_that_grow() -> None:
    viewer, operator, administrator = (permissions(name) for name in roles.DESCRIPTIONS)
    assert viewer < operator < administrator


def test_a_viewer_sees_devices_and_deployments_but_not_who_has_rights() -> None:
    assert {"devices.view_device", "rollouts.view_deployment", "core.view_auditentry"} <= permissions("viewer")
    assert not {name for name in permissions("viewer") if ".view_" not in name}
    assert not permissions("viewer") & {"auth.view_user", "devices.view_credential"}


def test_an_operator_runs_rollouts_and_devices_but_lets_nobody_in() -> None:
    operator = permissions("operator")
    assert {"rollouts.add_deployment", "rollouts.end_deployment", "devices.delete_device"} <= operator
    assert not operator & {
        "devices.add_enrolmenttoken",
        "devices.change_devicegroup",
        "devices.deploy_to_any_group",
        "auth.change_user",
    }


def test_an_administrator_does_everything() -> None:
    expected = {"devices.add_enrolmenttoken", "devices.deploy_to_any_group", "auth.change_user", "auth.change_group"}
    assert expected <= permissions("administrator")


def _new_permission(codename: str) -> Permission:
    kind = ContentType.objects.get_for_model(Device)
    return Permission.objects.create(content_type=kind, codename=codename, name=codename)


def _keep() -> None:
    roles.keep_roles(sender=apps.get_app_config("devices"))


def test_a_permission_that_appears_later_reaches_the_roles_with_the_next_migrate() -> None:
    _new_permission("view_gauge")
    _keep()
    for role in roles.DESCRIPTIONS:
        assert "devices.view_gauge" in permissions(role)


def test_a_permission_that_a_role_should_not_have_is_taken_away() -> None:
    Group.objects.get(name="viewer").permissions.add(_new_permission("explode_device"))
    _keep()
    assert "devices.explode_device" not in permissions("viewer")
    assert "devices.explode_device" in permissions("administrator")


def test_a_role_that_somebody_deleted_comes_back_whole() -> None:
    before = permissions("operator")
    Group.objects.get(name="operator").delete()
    call_command("migrate", verbosity=0)
    assert permissions("operator") == before


def test_roles_made_by_the_customer_are_left_alone() -> None:
    own = Group.objects.create(name="night shift")
    own.permissions.add(Permission.objects.get(codename="delete_device"))
    _keep()
    assert permissions("night shift") == {"devices.delete_device"}


def test_an_administrator_gives_roles_and_that_is_audited(administrator: Client) -> None:
    user = User.objects.create_user("nora", is_staff=True)
    page = administrator.get(at("auth_user_change", user.pk))
    assert page.status_code == 200
    operator = Group.objects.get(name="operator")
    data = {"username": "nora", "is_active": "on", "is_staff": "on", "groups": [operator.pk]}
    assert administrator.post(at("auth_user_change", user.pk), data).status_code == 302
    assert list(user.groups.all()) == [operator]
    entry = AuditEntry.objects.get(object_kind="User")
    assert (entry.actor_name, entry.action, entry.object_name) == ("administrator", "change", "nora")


def test_an_administrator_makes_a_user(administrator: Client) -> None:
    assert administrator.get(at("auth_user_add")).status_code == 200
    secret = "a long enough secret"
    data = {"username": "nora", "usable_password": "true", "password1": secret, "password2": secret}
    assert administrator.post(at("auth_user_add"), data).status_code == 302
    assert User.objects.get(username="nora").check_password(secret)
    entry = AuditEntry.objects.get(object_kind="User")
    assert (entry.action, entry.object_name) == ("create", "nora")
    assert secret not in str(entry.detail)


def test_an_administrator_cannot_become_superuser(administrator: Client) -> None:
    root = User.objects.create_superuser("root")
    me = User.objects.get(username="administrator")
    data = {"username": "administrator", "is_active": "on", "is_staff": "on", "is_superuser": "on"}
    administrator.post(at("auth_user_change", me.pk), data)
    me.refresh_from_db()
    assert not me.is_superuser
    assert administrator.post(at("auth_user_password_change", root.pk), {"password1": "x"}).status_code == 403


def test_the_built_in_roles_are_not_edited_by_hand(administrator: Client) -> None:
    viewer = Group.objects.get(name="viewer")
    assert administrator.post(at("auth_group_change", viewer.pk), {"name": "guest"}).status_code == 403
    assert "Sees everything, changes nothing." in words(administrator.get(at("auth_group_changelist")))


def test_the_side_bar_shows_what_the_role_may_see(viewer: Client, administrator: Client) -> None:
    assert "Users" not in words(viewer.get(at("index")))
    assert "Users" in words(administrator.get(at("index")))
