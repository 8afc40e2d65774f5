"""Who may use the REST API (ADM-2): Django's model permissions, for reading too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import DjangoModelPermissions
from rest_framework.request import Request

if TYPE_CHECKING:
    # DRF's views import this module by its name in the settings.
    from rest_framework.views import APIView

VIEW = ["%(app_label)s.view_%(model_name)s"]


class ModelPermissions(DjangoModelPermissions):
    """Like Django's admin: looking needs ``view``, changing ``add``, ``change`` or ``delete``.

    A view without a queryset says itself what it needs: ``required_permissions`` by HTTP method, where an empty list
    means that being logged in is enough.
    """

    perms_map = {**DjangoModelPermissions.perms_map, "GET": VIEW, "HEAD": VIEW, "OPTIONS": []}

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Whether the user may call this view with this method.

        Raises:
            PermissionDenied: naming the missing permission.
        """
        if not request.user or not request.user.is_authenticated:
            return False
        require(request.user, self._needed(request, view))
        return True

    def _needed(self, request: Request, view: APIView) -> list[str]:
        method = "GET" if request.method in (None, "HEAD") else request.method
        own = getattr(view, "required_permissions", None)
        if own is not None:
            return list(own.get(method, ()))
        return self.get_required_permissions(method, self._queryset(view).model)


def require(user: Any, permissions: list[str]) -> None:
    """Pass if the user has all of these permissions.

    Raises:
        PermissionDenied: naming those that are missing.
    """
    missing = [name for name in permissions if not user.has_perm(name)]
    if missing:
        raise PermissionDenied(
            f"{user.get_username()} lacks the permission {' and '.join(missing)}; an administrator can give it"
        )
