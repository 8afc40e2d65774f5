"""Admin pages that show objects and act on them through services; nothing here saves a model.

An :class:`Operation` is a button, its permission, its confirmation page and the service it calls, in one declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from unfold.admin import ModelAdmin
from unfold.enums import ActionVariant

from fleet.core.adminkit import bulk
from fleet.core.errors import FleetError


def _nothing(_: Any) -> list[str]:
    return []


def _always(_: Any) -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Operation:
    """Something an operator may do with one object, after a confirmation.

    ``run`` gets the object, the user and the form's cleaned data, calls one service and returns the sentence that
    tells the user what was done. ``consequences`` are sentences shown before; ``offered`` hides the button when the
    object's state makes it senseless (the service has the last word). A ``bulk`` one is in the list's menu too; one
    that is ``in_card`` has its button in a card of the page instead of above it.
    """

    name: str
    label: str
    icon: str
    permission: str
    question: str
    run: Callable[[Any, Any, dict[str, Any]], str]
    consequences: Callable[[Any], Sequence[str]] = _nothing
    offered: Callable[[Any], bool] = _always
    form: Callable[..., forms.Form] | None = None
    danger: bool = False
    bulk: bool = False
    in_card: bool = False


def sentences(error: FleetError) -> list[str]:
    """What a service complains about, one sentence each."""
    return [str(fault) for fault in getattr(error, "faults", ())] or [str(error)]


class ReadOnlyAdmin(ModelAdmin):
    """A model that the admin shows and never edits."""

    actions: Sequence[str] | None = ()
    list_per_page = 50
    empty_title = ""
    empty_text = ""
    empty_template = ""
    add_label = ""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.view_{self.opts.model_name}")


class ServiceAdmin(ReadOnlyAdmin):
    """A list, a page per object made of our own template, and operations. Subclasses say what is on the page."""

    operations: Sequence[Operation] = ()
    detail_template = ""

    def detail_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """What ``detail_template`` shows of the object."""
        return {}

    def get_urls(self) -> list[URLPattern]:
        own = [
            path(
                f"<path:object_id>/{operation.name}/",
                self.admin_site.admin_view(self.operate),
                {"name": operation.name},
                name=self.view_name(operation.name),
            )
            for operation in self.operations
        ]
        return [*own, *super().get_urls()]

    def view_name(self, name: str) -> str:
        """The URL name (without namespace) of one of this model's views."""
        return f"{self.opts.app_label}_{self.opts.model_name}_{name}"

    def link(self, name: str, *args: Any) -> str:
        """The address of one of this model's views."""
        return reverse(f"{self.admin_site.name}:{self.view_name(name)}", args=args)

    def found(self, request: HttpRequest, object_id: str) -> Any:
        """The object, if it exists and may be seen."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        obj = self.get_object(request, object_id)
        if obj is None:
            raise Http404(f"There is no {self.opts.verbose_name} with the id {object_id!r}.")
        return obj

    def page_context(self, request: HttpRequest, obj: Any = None, **more: Any) -> dict[str, Any]:
        """What every page of this model needs for the frame around it."""
        request.current_app = self.admin_site.name  # what admin templates reverse with
        frame = {"opts": self.opts, "original": obj, "title": str(obj) if obj else "", "media": self.media}
        return {**self.admin_site.each_context(request), **frame, "model_admin": self, **more}

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """The list's menu: the bulk operations that this user may do."""
        return {
            operation.name: (bulk.action(operation), operation.name, operation.label)
            for operation in self.operations
            if operation.bulk and request.user.has_perm(operation.permission)
        }

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        obj = self.found(request, object_id)
        context = self.page_context(request, obj, actions_detail=self.buttons(request, obj))
        return TemplateResponse(request, self.detail_template, {**context, **self.detail_context(request, obj)})

    def buttons(self, request: HttpRequest, obj: Any) -> list[dict[str, Any]]:
        """Unfold's description of the buttons that this user may press on this object."""
        return [
            {
                "title": operation.label,
                "icon": operation.icon,
                "variant": ActionVariant.DANGER if operation.danger else ActionVariant.DEFAULT,
                "attrs": {"data-operation": operation.name},
                "path": self.link(operation.name, obj.pk),
            }
            for operation in self.operations
            if not operation.in_card and request.user.has_perm(operation.permission) and operation.offered(obj)
        ]

    def operate(self, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
        """Ask (GET), then do (POST) one operation."""
        operation = next(each for each in self.operations if each.name == name)
        if not request.user.has_perm(operation.permission):
            raise PermissionDenied
        obj = self.found(request, object_id)
        form = operation.form(obj, data=request.POST or None) if operation.form else None
        if request.method != "POST" or (form is not None and not form.is_valid()):
            return self._confirmation(request, obj, operation, form)
        try:
            done = operation.run(obj, request.user, form.cleaned_data if form else {})
        except FleetError as error:
            return self._confirmation(request, obj, operation, form, error)
        messages.success(request, done)
        return HttpResponseRedirect(self._after(obj))

    def _confirmation(
        self,
        request: HttpRequest,
        obj: Any,
        operation: Operation,
        form: forms.Form | None,
        error: FleetError | None = None,
    ) -> HttpResponse:
        context = self.page_context(
            request,
            obj,
            operation=operation,
            question=operation.question.format(obj),
            consequences=operation.consequences(obj),
            form=form,
            errors=sentences(error) if error else [],
            cancel=self.link("change", obj.pk),
        )
        status = error.status if error else HTTPStatus.OK
        return TemplateResponse(request, "fleet/confirm.html", context, status=status)

    def _after(self, obj: models.Model) -> str:
        still_there = type(obj)._default_manager.filter(pk=obj.pk).exists() if obj.pk else False
        return self.link("change", obj.pk) if still_there else self.link("changelist")
