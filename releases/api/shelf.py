"""The shelf of agent releases."""

from __future__ import annotations

from typing import Any

from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.core.errors import NotFound
from fleet.core.rest import ApiView
from releases import selectors, services
from releases.api.forms import ReleaseElsewhere, ReleaseFile, ReleaseObject
from releases.models import Architecture, ShelvedRelease
from releases.services.shelving import Elsewhere

ADD = ["releases.add_shelvedrelease"]
VIEW = {"GET": ["releases.view_shelvedrelease"]}


class ReleaseFilter(filters.FilterSet):
    version = filters.CharFilter()
    architecture = filters.ChoiceFilter(choices=Architecture.choices)


class ReleaseView(ApiView):
    queryset = ShelvedRelease.objects.none()
    serializer_class = ReleaseObject

    def shown(self, sha256: str) -> dict[str, Any]:
        """Raises NotFound when there is none."""
        found = selectors.shelf().filter(sha256=sha256).first()
        if found is None:
            raise NotFound(f"no release with the digest {sha256[:64]} is on the shelf")
        return ReleaseObject(found, context=self.get_serializer_context()).data


class ReleaseList(ReleaseView):
    filterset_class = ReleaseFilter
    required_permissions = {**VIEW, "POST": ADD}

    @extend_schema(operation_id="release_list", responses=ReleaseObject(many=True))
    def get(self, request: Request, **_: str) -> Response:
        """Releases of the agent, the newest first."""
        return self.page_of(selectors.shelf())

    @extend_schema(operation_id="release_note", request=ReleaseElsewhere, responses={201: ReleaseObject})
    def post(self, request: Request, **_: str) -> Response:
        """Note a release that lies elsewhere; devices fetch it from there."""
        given = self.checked(ReleaseElsewhere)
        notes = given.pop("notes")
        made = services.release_note(elsewhere=Elsewhere(**given), actor=self.actor, notes=notes)
        return Response(self.shown(made.sha256), status=201)


class ReleaseUpload(ReleaseView):
    filter_backends = ()
    parser_classes = [MultiPartParser]
    required_permissions = {"POST": ADD}

    @extend_schema(operation_id="release_upload", request=ReleaseFile, responses={201: ReleaseObject})
    def post(self, request: Request, **_: str) -> Response:
        """Keep an archive that was built with ``make agent-release``."""
        given = self.checked(ReleaseFile)
        made = services.release_upload(archive=given["file"], actor=self.actor, notes=given["notes"])
        return Response(self.shown(made.sha256), status=201)


class ReleaseOne(ReleaseView):
    filter_backends = ()
    required_permissions = {**VIEW, "DELETE": ["releases.delete_shelvedrelease"]}

    @extend_schema(operation_id="release_get")
    def get(self, request: Request, **_: str) -> Response:
        """One release, with what to write into a device's spec."""
        return Response(self.shown(self.kwargs["sha256"]))

    @extend_schema(operation_id="release_remove", request=None, responses={204: None})
    def delete(self, request: Request, **_: str) -> Response:
        """Take it off the shelf; devices that run it go on."""
        services.release_remove(release=selectors.release_of(self.kwargs["sha256"]), actor=self.actor)
        return Response(status=204)
