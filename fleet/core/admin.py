"""Audit, events, and who may sign in."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django_celery_beat import models as beat
from knox.models import AuthToken
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import AllValuesCheckboxFilter, RangeDateTimeFilter
from unfold.decorators import display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from fleet.core import audit, roles
from fleet.core.adminkit import show
from fleet.core.adminkit.pages import ReadOnlyAdmin
from fleet.core.models import AuditEntry, Event

# The schedule is in code, and tokens are made by signing in: neither is edited here, past the services.
for model in (
    beat.ClockedSchedule,
    beat.CrontabSchedule,
    beat.IntervalSchedule,
    beat.PeriodicTask,
    beat.SolarSchedule,
    AuthToken,
    User,
    Group,
):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


class RecordAdmin(ReadOnlyAdmin):
    """What both kinds of records share: newest first, and a way to the object they are about."""

    date_hierarchy = "at"
    list_filter_submit = True

    @display(description="When", ordering="at")
    def when(self, record: AuditEntry | Event) -> SafeString:
        return format_html(
            '<span class="hf-nowrap">{}</span><br><span class="hf-small hf-mute hf-nowrap">{}</span>',
            show.moment(record.at),
            show.exact(record.at),
        )

    @display(description="Object", ordering="object_name")
    def about(self, record: AuditEntry | Event) -> SafeString:
        kind = format_html('<span class="hf-small hf-mute">{}</span>', record.object_kind)
        address = object_list(record.object_kind)
        if not address:
            return format_html("{}<br>{}", kind, record.object_name)
        query = urlencode({"q": record.object_name})
        return format_html('{}<br><a class="hf-link" href="{}?{}">{}</a>', kind, address, query, record.object_name)


def object_list(kind: str) -> str:
    """The address of the list in which an object of this kind is found; empty when the admin has none."""
    for model in admin.site._registry:
        if model._meta.model_name == kind.lower().replace(" ", "").replace("_", ""):
            return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    return ""


@admin.register(AuditEntry)
class AuditEntryAdmin(RecordAdmin):
    list_display = ("when", "who", "action", "about", "details")
    list_display_links = ("action",)
    list_filter = (
        ("action", AllValuesCheckboxFilter),
        ("object_kind", AllValuesCheckboxFilter),
        ("at", RangeDateTimeFilter),
    )
    search_fields = ("actor_name", "action", "object_name")
    search_help_text = "Search by person, action or object"
    list_select_related = False
    fields = ("at", "actor_name", "action", "object_kind", "object_name", "details")
    readonly_fields = ("details",)
    empty_title = "Nothing has been done yet"
    empty_text = "Every change that a person or their token makes is written here, and stays."

    @display(description="Who", ordering="actor_name")
    def who(self, entry: AuditEntry) -> SafeString:
        return format_html("{} {}", show.icon("person" if entry.actor_id else "settings"), entry.actor_name)

    @display(description="Details")
    def details(self, entry: AuditEntry) -> SafeString:
        if not isinstance(entry.detail, dict) or not entry.detail:
            return show.DASH
        return show.chips({str(key): str(value) for key, value in entry.detail.items()}, limit=6)


@admin.register(Event)
class EventAdmin(RecordAdmin):
    list_display = ("when", "reason", "about", "text")
    list_display_links = ("reason",)
    list_filter = (
        ("reason", AllValuesCheckboxFilter),
        ("object_kind", AllValuesCheckboxFilter),
        ("at", RangeDateTimeFilter),
    )
    search_fields = ("reason", "object_name", "message")
    search_help_text = "Search by reason, object or words of the message"
    fields = ("at", "reason", "object_kind", "object_name", "message")
    empty_title = "Nothing has happened yet"
    empty_text = "Devices that come and go and rollouts that move are told here."

    @display(description="Message")
    def text(self, event: Event) -> SafeString:
        return format_html('<span class="hf-wrap">{}</span>', event.message)


class AuditedAdmin(ModelAdmin):
    """Django's own forms for its own models, with an audit entry for each change (ADM-1)."""

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        self._audit(request, obj, "create")
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        changed = [name for part in message for name in part.get("changed", {}).get("fields", [])]
        self._audit(request, obj, "change", fields=changed)
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        for obj in queryset:
            self._audit(request, obj, "delete")
        return super().log_deletions(request, queryset)

    def _audit(self, request: HttpRequest, obj: Any, verb: str, **detail: Any) -> None:
        kind = "User" if isinstance(obj, User) else "Role"
        audit.record(actor=request.user, action=verb, kind=kind, name=str(obj), detail=detail)


@admin.register(User)
class UserAdmin(DjangoUserAdmin, AuditedAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "role_names", "is_active", "is_superuser", "last_login")
    filter_horizontal = ()
    autocomplete_fields = ("groups",)
    compressed_fields = True
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        (
            "Rights",
            {
                "fields": ("is_active", "is_staff", "is_superuser", "groups"),
                "description": "Who may use this admin is staff; what they may do there follows from their roles.",
            },
        ),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("last_login", "date_joined")

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return fields if request.user.is_superuser else (*fields, "is_superuser")

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return _may_touch(request, obj) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return _may_touch(request, obj) and super().has_delete_permission(request, obj)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("groups")

    @display(description="Roles")
    def role_names(self, user: User) -> SafeString:
        return show.names(sorted(group.name for group in user.groups.all()))


def _may_touch(request: HttpRequest, user: User | None) -> bool:
    """Whoever could change a superuser's password would be one."""
    return user is None or not user.is_superuser or request.user.is_superuser


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, AuditedAdmin):
    list_display = ("name", "what", "people")
    filter_horizontal = ("permissions",)
    search_fields = ("name",)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("user_set")

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return not _built_in(obj) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return not _built_in(obj) and super().has_delete_permission(request, obj)

    @display(description="What for")
    def what(self, group: Group) -> str:
        return roles.DESCRIPTIONS.get(group.name, "Made here; may be named as a group's deployers.")

    @display(description="Users")
    def people(self, group: Group) -> SafeString:
        return show.names(sorted(user.username for user in group.user_set.all()))


def _built_in(group: Group | None) -> bool:
    """The three roles are kept by the code; others are made beside them."""
    return group is not None and group.name in roles.DESCRIPTIONS
