"""What the views of the REST API share: strict input, and who asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

from django.contrib.auth.models import User
from django.urls import reverse
from django_filters.rest_framework import FilterSet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.core.errors import FleetError, Invalid, NotFound
from fleet.core.pagination import Pages
from fleet.core.parsers import JsonObject

#: Of answers with a secret.
NO_STORE = {"Cache-Control": "no-store"}
API_VERSION = "fleet.nationtech.io/v1alpha1"


class Strict(serializers.Serializer[Any]):
    """A body with a field that does not exist is refused: a misspelt wish must not pass unnoticed."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            unknown = [str(name)[:80] for name in data if name not in self.fields]
            if unknown:
                allowed = ", ".join(self.fields)
                raise serializers.ValidationError(dict.fromkeys(unknown, f"unknown field; allowed: {allowed}"))
        return super().to_internal_value(data)


class Text(serializers.CharField):
    """Text alone: DRF's own field takes numbers as well."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError(f"found {type(data).__name__}; allowed: text")
        return super().to_internal_value(data)


class Whole(serializers.IntegerField):
    """A whole number: DRF's own field takes text as well."""

    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            raise serializers.ValidationError("allowed: a whole number")
        return super().to_internal_value(data)


class TrueFalse(serializers.BooleanField):
    """``true`` or ``false``: DRF's own field takes words and numbers as well."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            raise serializers.ValidationError("allowed: true or false")
        return data


class Constant(serializers.CharField):
    """The same word in every object, as ``kind``."""

    def __init__(self, value: str) -> None:
        super().__init__(read_only=True, source="*")
        self.value = value

    def to_representation(self, value: Any) -> str:
        return self.value


class Names(serializers.ListField):
    """The names of related rows, from what was prefetched."""

    child = serializers.CharField()

    def to_representation(self, data: Any) -> list[str]:
        return [each.name for each in data.all()]


class LengthMissing(FleetError):
    """WSGI shows no body whose length was not announced; it must not be taken for an empty one."""

    status = 411
    title = "Length required"


@extend_schema(exclude=True)
class NoSuchAddress(APIView):
    """Whatever is not in the urls, so that programs get a problem document there too."""

    authentication_classes = ()
    permission_classes = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raises:
        NotFound: always.
        """
        raise NotFound(
            f"there is no address {request.path[:200]!r}; {reverse('schema', args=['v1'])} lists those that exist, "
            "and each ends with /"
        )


class ApiView(GenericAPIView[Any]):
    """A view says by HTTP method which permissions it needs, checks the input, and calls one service."""

    parser_classes = [JsonObject]
    filterset_class: ClassVar[type[FilterSet] | None] = None
    #: Full names of permissions by HTTP method; see :class:`fleet.core.permissions.ModelPermissions`.
    required_permissions: ClassVar[dict[str, list[str]]] = {}

    @property
    def actor(self) -> User:
        """Who asks; the permission class let nobody else in."""
        return cast(User, self.request.user)

    def checked(self, serializer: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """The body as this serializer reads it.

        Raises:
            ValidationError: with every fault.
        """
        reader = serializer(data=self.request.data)
        reader.is_valid(raise_exception=True)
        return cast(dict[str, Any], reader.validated_data)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Names in an address are names: databases take no control characters.

        Raises:
            NotFound: there can be no object of that name.
            LengthMissing: the body came in chunks.
        """
        super().initial(request, *args, **kwargs)
        if "HTTP_TRANSFER_ENCODING" in request.META:
            raise LengthMissing("send the body with its Content-Length, not in chunks; nothing was read")
        if not all(value.isprintable() for value in kwargs.values()):
            raise NotFound("no object has a name with control characters")

    def page_of(self, rows: Any) -> Response:
        """One page of the rows, filtered by the view's filters.

        Raises:
            Invalid: when the address has a parameter that doesn't exist: a misspelt filter would show too much.
        """
        filters = self.filterset_class.base_filters if self.filterset_class else {}
        known = [*filters, Pages.page_query_param, Pages.page_size_query_param]
        if unknown := sorted(set(self.request.query_params) - set(known)):
            raise Invalid(f"unknown parameter {unknown[0][:80]!r}; allowed: {', '.join(known)}")
        page = self.paginate_queryset(self.filter_queryset(rows))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)
