"""Manifests over REST: taken as a whole, or refused with every fault and nothing changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from devices.models import DeviceGroup
from rollouts.models import Deployment, Revision
from tests.integration.api.rest import Rest, database, problem
from tests.integration.rollouts.world import World

pytestmark = pytest.mark.clause("API-1")
GOOD = yaml.safe_dump(World().manifest())


def changed(**fields: Any) -> str:
    return yaml.safe_dump({**World().manifest(), **fields})


def with_spec(**fields: Any) -> str:
    manifest = World().manifest()
    return yaml.safe_dump({**manifest, "spec": {**manifest["spec"], **fields}})


@pytest.mark.clause("DEP-9")
def test_a_manifest_is_created_then_unchanged_then_configured(operator: Rest, world: World) -> None:
    outcomes = [operator.apply(text).json()["results"][0] for text in (GOOD, GOOD)]
    other = yaml.safe_dump(world.manifest(image="registry.example.com/api:2.0"))
    outcomes.append(operator.apply(other).json()["results"][0])
    assert [each["outcome"] for each in outcomes] == ["created", "unchanged", "configured"]
    assert [each["generation"] for each in outcomes] == [1, 1, 2]
    assert outcomes[0] == {
        "kind": "Deployment",
        "namespace": "default",
        "name": "api",
        "outcome": "created",
        "generation": 1,
        "message": "generation 1",
    }
    assert Revision.objects.get(generation=2).created_by == "operator"


def test_json_is_taken_as_yaml_is(operator: Rest, world: World) -> None:
    answer = operator.call("POST", "manifests/", world.manifest())
    assert answer.json()["results"][0]["outcome"] == "created"
    assert operator.apply(GOOD).json()["results"][0]["outcome"] == "unchanged"


def test_a_dry_run_says_what_would_happen_and_does_nothing(operator: Rest) -> None:
    before = database()
    answer = operator.apply(GOOD, dry_run="true").json()
    assert answer["dryRun"] is True
    assert answer["results"][0]["outcome"] == "created"
    assert "nothing was changed" in answer["results"][0]["message"]
    assert database() == before


def test_a_dry_run_that_is_neither_true_nor_false_is_refused(operator: Rest) -> None:
    assert "allowed: true, false" in problem(operator.apply(GOOD, dry_run="yes"), 422)["detail"]
    assert not Deployment.objects.exists()


def test_several_manifests_are_applied_in_one_go(operator: Rest, world: World) -> None:
    text = yaml.safe_dump_all([world.manifest("b"), world.manifest("a")])
    assert [each["name"] for each in operator.apply(text).json()["results"]] == ["b", "a"]


def test_of_several_manifests_all_are_applied_or_none(operator: Rest, world: World) -> None:
    DeviceGroup.objects.create(name="plant")
    text = yaml.safe_dump_all([world.manifest("a"), world.manifest("b", groups=["plant"])])
    before = database()
    assert "may not deploy to group plant" in problem(operator.apply(text), 403)["detail"]
    assert database() == before


def test_applying_what_is_being_deleted_conflicts(operator: Rest, world: World) -> None:
    world.device("edge-1")
    world.rollout()
    operator.call("DELETE", "namespaces/default/deployments/api/")
    assert "is being deleted" in problem(operator.apply(GOOD), 409)["detail"]


UNREADABLE = {
    "key twice": (GOOD + "kind: Deployment\n", "second time"),
    "nested deeply": ("a: " + "[" * 5000, "nested too deeply"),
    "nested deeply in JSON": ('{"a":' * 5000, "nested too deeply"),
    "anchors that explode": ("a: &a [1,2]\nb: &b [*a,*a]\nc: [*b,*b]\n", "anchors and aliases are not taken"),
    "control character": (GOOD.replace("name: api", "name: 'a\x07pi'"), "U+0007"),
    "tag that runs code": ("!!python/object/apply:os.system ['true']", "tags are not taken"),
    "nothing": ("", "no manifest"),
    "no text": ("\udcff".encode("utf-8", "surrogateescape"), "not UTF-8"),
}
INVALID = {
    "unknown field": (with_spec(replicas=3), "replicas"),
    "wrong type": (with_spec(allowedGroups="lab"), "spec.allowedGroups"),
    "escaped control character": (GOOD.replace("name: api", 'name: "a\\u0000pi"'), "metadata.name"),
    "another group": (changed(apiVersion="apps/v1"), "apiVersion"),
    "another kind": (changed(kind="StatefulSet"), "kind"),
    "percentage": (with_spec(rollout={"strategy": "Immediate", "maxUnavailable": "10%"}), "maxUnavailable"),
    "a list": ("- 1\n- 2\n", "a manifest is an object"),
}
BAD = {**UNREADABLE, **INVALID}


@pytest.mark.clause("DEP-2", "DEP-8")
@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_refused_with_its_place_and_changes_nothing(operator: Rest, world: World, case: str) -> None:
    text, word = BAD[case]
    world.device("edge-1")
    before = database()
    status, title = (400, "Unreadable manifest") if case in UNREADABLE else (422, "Invalid manifest")
    found = problem(operator.apply(text), status)
    assert found["title"] == title
    assert any(word in f"{each['path']}: {each['message']}" for each in found["errors"])
    assert database() == before


@pytest.mark.parametrize("size", [1_048_577, 10_000_000])
def test_what_is_too_large_is_refused(operator: Rest, size: int) -> None:
    before = database()
    text = GOOD.encode() + b"#" * (size - len(GOOD))
    assert "allowed: 1048576" in problem(operator.apply(text), 413)["detail"]
    assert database() == before


def test_another_type_of_body_is_refused(operator: Rest) -> None:
    answer = operator.call("POST", "manifests/", b"<Deployment/>", content_type="application/xml")
    assert "application/xml" in problem(answer, 415)["detail"]


def test_a_fault_says_where_it_is_and_shows_no_secret(operator: Rest) -> None:
    manifest = World().manifest()
    manifest["spec"]["score"]["data"]["services"][0]["env"] = [{"name": "PASSWORD", "value": ["s3cr3t"]}]
    answer = operator.apply(json.dumps(manifest))
    (fault,) = problem(answer, 422)["errors"]
    assert fault["path"] == "spec.score.data.services[0].env[0].value"
    assert b"s3cr3t" not in answer.content


def test_a_body_without_a_length_is_not_taken_for_an_empty_one(operator: Rest) -> None:
    answer = operator.call("POST", "manifests/", GOOD.encode(), content_type="application/yaml", chunked=True)
    assert "Content-Length" in problem(answer, 411)["detail"]
