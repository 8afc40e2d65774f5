"""The CRDs that are shipped are those that the types give, in the form that old API servers take."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from fleet.kube.crds import definitions

SHIPPED = Path(__file__).resolve().parents[3] / "deploy/kubernetes/crds"
#: What no structural schema may have, and what servers before 1.25 don't know.
REFUSED = {"$ref", "$defs", "anyOf", "oneOf", "allOf", "const", "propertyNames", "x-kubernetes-validations", "default"}


def test_the_shipped_files_are_up_to_date() -> None:
    call_command("crds", folder=SHIPPED, check=True)


@pytest.mark.clause("K8S-1")
def test_what_is_printed_is_what_is_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("crds")
    printed = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [each["spec"]["names"]["shortNames"] for each in printed] == [["fleetdep"], ["fleettask"], ["fleetdev"]]
    assert printed == [
        yaml.safe_load((SHIPPED / f"{each['spec']['names']['plural']}.yaml").read_text()) for each in printed
    ]


def test_a_file_that_differs_is_named(tmp_path: Path) -> None:
    call_command("crds", folder=tmp_path)
    (tmp_path / "devices.yaml").write_text("kind: Other\n")
    with pytest.raises(CommandError, match=r"not up to date in .*: devices\.yaml; run manage\.py crds --folder"):
        call_command("crds", folder=tmp_path, check=True)


def test_old_servers_understand_the_schemas() -> None:
    for schema in all_schemas():
        assert not REFUSED & set(schema)
        assert schema.get("additionalProperties") is not False
        assert "type" in schema
        assert "(?" not in schema.get("pattern", "")  # RE2 looks neither ahead nor behind
        re.compile(schema.get("pattern", ""))


def test_every_object_keeps_fields_that_nobody_knows() -> None:
    objects = [each for each in all_schemas() if each["type"] == "object" and "additionalProperties" not in each]
    assert [each for each in objects if not each.get("x-kubernetes-preserve-unknown-fields")] == [
        {"type": "object"},  # metadata, which is the server's
        {"type": "object"},
        {"type": "object", "properties": {"name": objects_name()}},
    ]


def objects_name() -> dict[str, Any]:
    (device,) = [each for each in definitions() if each["spec"]["names"]["kind"] == "Device"]
    schema: dict[str, Any] = _root(device)["properties"]["metadata"]["properties"]["name"]
    return schema


def all_schemas() -> Iterator[dict[str, Any]]:
    for definition in definitions():
        yield from _below(_root(definition))


def _root(definition: dict[str, Any]) -> dict[str, Any]:
    root: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return root


def _below(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from _below(inner)
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from _below(schema[key])
