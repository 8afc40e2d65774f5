"""OpenAPI describes what the API really answers."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User
from django.core.management import call_command
from jsonschema import Draft202012Validator, FormatChecker

from agent.wire.schema import manifest_schema
from fleet.core import clock
from tests.integration.api.rest import Rest
from tests.integration.rollouts.world import World

pytestmark = pytest.mark.clause("API-1")
ONE = "/api/v1/namespaces/{namespace}/deployments/{name}/"
METHODS = ("get", "post", "put", "patch", "delete")


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """As ``manage.py spectacular`` writes it; a warning fails."""
    out = io.StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=out)
    found: dict[str, Any] = yaml.safe_load(out.getvalue())
    return found


@pytest.fixture
def world(db: None) -> Iterator[World]:
    made = World()
    with clock.reading(lambda: made.now):
        yield made


@pytest.fixture
def rest(db: None) -> Rest:
    return Rest.of(User.objects.create_superuser("ada"))


def operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            if method in METHODS:
                yield path, method, operation


def must_fit(schema: dict[str, Any], described: dict[str, Any], value: Any) -> None:
    """A value against a schema whose references lead into the document; an undescribed field is a fault too."""
    whole = {**described, "components": schema["components"]}
    Draft202012Validator(_closed(whole), format_checker=FormatChecker()).validate(value)


def _closed(described: Any) -> Any:
    if isinstance(described, list):
        return [_closed(each) for each in described]
    if not isinstance(described, dict):
        return described
    found = {key: _closed(value) for key, value in described.items()}
    if "properties" in found and found.get("type") == "object":
        found.setdefault("additionalProperties", False)
    return found


def answer_of(schema: dict[str, Any], path: str, method: str, status: str = "200") -> dict[str, Any]:
    described: dict[str, Any] = schema["paths"][path][method]["responses"][status]["content"]["application/json"]
    return dict(described["schema"])


def test_every_reference_leads_somewhere(schema: dict[str, Any]) -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            yield from [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            for inner in value.values():
                yield from references(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from references(inner)

    known = {f"#/components/schemas/{name}" for name in schema["components"]["schemas"]}
    assert set(references(schema)) <= known


def test_the_manifests_types_are_those_of_the_wire(schema: dict[str, Any]) -> None:
    for name, definition in manifest_schema("Deployment")["$defs"].items():
        described = schema["components"]["schemas"][f"Manifest{name}"]
        assert described.get("required") == definition.get("required")
        assert set(described["properties"]) == set(definition["properties"])
        assert described.get("additionalProperties") == definition.get("additionalProperties")


def test_an_example_manifest_fits_the_schema(schema: dict[str, Any]) -> None:
    must_fit(schema, {"$ref": "#/components/schemas/ManifestDeployment"}, World().manifest())


def test_every_operation_says_how_it_refuses_and_who_may_call_it(schema: dict[str, Any]) -> None:
    for path, method, operation in operations(schema):
        refusal = operation["responses"]["default"]["content"]["application/problem+json"]["schema"]
        assert refusal == {"$ref": "#/components/schemas/Problem"}, (path, method)
        assert operation["description"], (path, method)
        assert operation["security"], (path, method)


def test_a_refusal_is_as_described(schema: dict[str, Any], rest: Rest) -> None:
    refusal = rest.apply("kind: Deployment").json()
    must_fit(schema, {"$ref": "#/components/schemas/Problem"}, refusal)


def test_answers_are_as_described(schema: dict[str, Any], rest: Rest, world: World) -> None:
    device = world.device("edge-1", canary=True)
    world.device("edge-2")
    deployment = world.rollout(world.manifest(labels={"team": "imaging"}))
    world.says(device, deployment, "failed", "image not found")
    world.drain()
    world.evaluate(deployment)
    token = {"name": "t", "useLimit": 1, "expiresInSeconds": 60, "groups": ["lab"], "labels": {"a": "b"}}
    created = rest.call("POST", "enrolment-tokens/", token)
    must_fit(schema, answer_of(schema, "/api/v1/enrolment-tokens/", "post", "201"), created.json())
    one = "namespaces/default/deployments/api/"
    secret = "namespaces/default/secrets/db/"
    one_secret = "/api/v1/namespaces/{namespace}/secrets/{name}/"
    for method in ("PUT", "PATCH"):
        done = rest.call(method, secret, {"values": {"password": "x"}})
        must_fit(schema, answer_of(schema, one_secret, method.lower()), done.json())
    for path, asked in {
        "/api/v1/namespaces/{namespace}/secrets/": "namespaces/default/secrets/",
        one_secret: secret,
        "/api/v1/deployments/": "deployments/",
        ONE: one,
        f"{ONE}targets/": f"{one}targets/",
        f"{ONE}revisions/": f"{one}revisions/",
        "/api/v1/devices/": "devices/",
        "/api/v1/devices/{name}/": "devices/edge-1/",
        "/api/v1/devices/{device}/deployments/": "devices/edge-1/deployments/",
        "/api/v1/events/": "events/",
        "/api/v1/groups/": "groups/",
        "/api/v1/groups/{name}/": "groups/lab/",
        "/api/v1/enrolment-tokens/": "enrolment-tokens/",
        "/api/v1/enrolment-tokens/{name}/": "enrolment-tokens/t/",
    }.items():
        must_fit(schema, answer_of(schema, path, "get"), rest.get(asked))
    applied = rest.apply(yaml.safe_dump(world.manifest()))
    must_fit(schema, answer_of(schema, "/api/v1/manifests/", "post"), applied.json())
    for verb in ("retarget", "end"):
        done = rest.call("POST", f"{one}{verb}/")
        must_fit(schema, answer_of(schema, f"{ONE}{verb}/", "post"), done.json())
    must_fit(schema, answer_of(schema, ONE, "delete", "202"), rest.call("DELETE", one).json())
