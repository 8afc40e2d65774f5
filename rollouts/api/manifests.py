"""The entrance for manifests."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.core import door
from fleet.core.errors import Invalid
from fleet.core.kinds import Done, check_any_permission, manifests_apply
from fleet.core.openapi import manifest_component
from fleet.core.parsers import JsonManifestText, ManifestText
from fleet.core.rest import ApiView
from rollouts.api.forms import Results

_DRY_RUN = OpenApiParameter("dry_run", bool, description="Check all and say what would happen; change nothing.")


class Manifests(ApiView):
    parser_classes = [ManifestText, JsonManifestText]
    #: Which ones a text needs depends on its kinds, so the service asks.
    required_permissions = {"POST": []}

    @extend_schema(
        operation_id="manifests_apply",
        parameters=[_DRY_RUN],
        request={
            "application/yaml": manifest_component("Deployment"),
            "application/json": manifest_component("Deployment"),
        },
        responses=Results,
    )
    def post(self, request: Request, **_: str) -> Response:
        """Apply every manifest of the text, or none."""
        check_any_permission(self.actor)
        dry_run = _true_or_false(request, "dry_run")
        admitted = door.admit(request.data or b"")  # of an empty body DRF makes an empty dict
        applied = manifests_apply(manifests=admitted, actor=self.actor, dry_run=dry_run)
        results = [_result(each, outcome, dry_run) for each, outcome in zip(admitted, applied, strict=True)]
        return Response(Results({"dryRun": dry_run, "results": results}).data)


def _true_or_false(request: Request, name: str) -> bool:
    value = request.query_params.get(name, "false")
    if value not in ("true", "false"):
        raise Invalid(f"{name}: found {value[:40]!r}; allowed: true, false")
    return value == "true"


def _result(admitted: door.Admitted, applied: Done, dry_run: bool) -> dict[str, object]:
    metadata = admitted.manifest.metadata
    return {
        "kind": admitted.manifest.kind,
        "namespace": metadata.namespace,
        "name": metadata.name,
        "outcome": applied.outcome,
        "generation": applied.generation,
        "message": f"{applied.message} (dry run: nothing was changed)" if dry_run else applied.message,
    }
