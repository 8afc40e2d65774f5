"""The door under random and hostile input: only manifests get in, and nothing but a refusal comes out."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.wire import names
from fleet.core import door
from fleet.core.door import reading

BASE: dict[str, Any] = {
    "apiVersion": "fleet.nationtech.io/v1alpha1",
    "kind": "Deployment",
    "metadata": {"name": "a", "labels": {"x": "y"}},
    "spec": {
        "allowedGroups": ["lab"],
        "targetSelector": {"matchLabels": {"role": "a"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]},
        "rollout": {"strategy": "Immediate"},
        "score": {
            "type": "PodmanV0",
            "data": {
                "init_container": {"name": "i", "image": "i:1"},
                "services": [
                    {
                        "name": "s",
                        "image": "s:1",
                        "env": [{"name": "A", "value": "s3cr3t"}],
                        "secret_env": [{"name": "B", "secret": {"name": "c", "key": "d"}}],
                        "volumes": [{"host_path": "/a", "container_path": "/b"}],
                    }
                ],
            },
        },
    },
}


def copy() -> dict[str, Any]:
    copied: dict[str, Any] = json.loads(json.dumps(BASE))
    return copied


def faults(document: Any) -> list[str]:
    """What the door says against a document; nothing when it is admitted."""
    try:
        door.admit(json.dumps(document))
    except door.ManifestInvalid as refused:
        return [str(fault) for fault in refused.faults]
    return []


def objects(value: Any, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Each object of the manifest whose fields are known, with its path."""
    found = []
    if isinstance(value, dict):
        if not path.endswith(("labels", "matchLabels")):
            found.append((path, value))
        for key, inner in value.items():
            found += objects(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += objects(inner, f"{path}[{index}]")
    return found


def test_the_base_of_these_tests_is_admitted() -> None:
    assert faults(copy()) == []


@pytest.mark.clause("DEP-2")
@given(st.data())
def test_unknown_fields_anywhere_are_all_reported_at_once(data: st.DataObject) -> None:
    document = copy()
    places = objects(document)
    chosen = data.draw(st.lists(st.sampled_from(range(len(places))), min_size=1, unique=True))
    for index in chosen:
        places[index][1]["zzz"] = 1
    told = faults(document)
    assert len(told) == len(chosen)
    for index in chosen:
        path = places[index][0]
        assert any(sentence.startswith(f"{path}.zzz: ".lstrip(".")) for sentence in told)


@pytest.mark.clause("DEP-2")
@given(st.data(), st.sampled_from([None, True, 7, 1.5, "s3cr3t", [], {}, ["s3cr3t"], {"s3cr3t": 1}]))
def test_any_value_at_any_place_is_admitted_or_refused_by_its_path_and_env_values_stay_secret(
    data: st.DataObject, value: Any
) -> None:
    document = copy()
    path, place = data.draw(st.sampled_from(objects(document)))
    field = data.draw(st.sampled_from(sorted(place)))
    place[field] = value
    told = faults(document)
    where = f"{path}.{field}".lstrip(".")
    assert all(sentence.startswith((where, path)) or where.startswith(sentence.split(":")[0]) for sentence in told)
    if field == "env" or ".env[" in path:
        assert not any("s3cr3t" in sentence for sentence in told)


@pytest.mark.clause("DEP-2")
def test_a_value_that_somebody_wrote_into_the_name_stays_secret() -> None:
    document = copy()
    document["spec"]["score"]["data"]["services"][0]["env"] = [{"name": "PASSWORD=s3cr3t"}]
    (told,) = faults(document)
    assert told.startswith('spec.score.data.services[0].env[0].name: found "PASSWORD=…"; allowed: ')


@settings(max_examples=300)
@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_bytes_of_any_kind_lead_to_a_refusal_and_to_nothing_else(data: bytes) -> None:
    with pytest.raises(door.ManifestInvalid) as refused:
        door.admit(data)
    assert refused.value.faults


HOSTILE = {
    "ten megabytes": b"x" * 10_000_000,
    "a megabyte of one name": b"apiVersion: fleet.nationtech.io/v1alpha1\nkind: Deployment\nmetadata: {name: "
    + b"a-" * 500_000
    + b"!}",
    "deep lists": b"[" * 500_000,
    "deep objects": b"{a: " * 100_000,
    "deep blocks": b"".join(b" " * n + b"a:\n" for n in range(1000)),
    "laughs": b"a: &a [x,x,x,x]\n" + b"".join(b"%c: &%c [*%c,*%c]\n" % (n + 1, n + 1, n, n) for n in range(97, 121)),
    "many keys": b"".join(b"k%d: 1\n" % n for n in range(90_000)),
    "many documents": b"---\n{}\n" * 10_000,
    "many tags": b"- !!binary x\n" * 50_000,
    "a JSON of a million numbers": b"[" + b"1," * 500_000 + b"1]",
    "a JSON that is deep": b'{"a":' * 33 + b"1" + b"}" * 33,
    "a number of many digits": b"a: " + b"9" * 100_000,
    "a JSON number of many digits": b'{"a": ' + b"9" * 100_000 + b"}",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_are_refused_before_they_cost_much(data: bytes) -> None:
    """The limit is on values that are built, so it holds on a slow machine too; the clock only catches a blow-up."""
    start = time.process_time()
    with pytest.raises(door.ManifestInvalid):
        door.admit(data)
    assert time.process_time() - start < 60


def test_a_text_may_be_as_large_as_the_limit_says() -> None:
    document = copy()
    document["metadata"]["annotations"] = {f"a{n}": "x" * 60_000 for n in range(16)}
    text = json.dumps(document)
    assert reading.MAX_BYTES * 0.9 < len(text) < reading.MAX_BYTES
    assert faults(document) == []


#: Line breaks of YAML 1.1, which no other format knows.
BREAKS = {"\x85", "\u2028", "\u2029"}
plain = st.text(st.characters(codec="utf-8", exclude_characters="\x00", exclude_categories=["Cs"]), max_size=40)


@pytest.mark.clause("DEP-3")
@given(plain)
def test_an_environment_value_comes_through_as_it_was_written(value: str) -> None:
    document = copy()
    document["spec"]["score"]["data"]["services"][0]["env"][0]["value"] = value
    texts = [json.dumps(document), json.dumps(document, ensure_ascii=False), yaml.safe_dump(document)]
    if not set(value) & BREAKS:
        texts.append(yaml.safe_dump(document, allow_unicode=True))
    for text in texts:
        (admitted,) = door.admit(text)
        assert admitted.manifest.spec.score.data.services[0].env[0].value == value


@pytest.mark.parametrize("character", sorted(BREAKS))
def test_a_line_break_that_yaml_would_turn_into_a_space_is_refused(character: str) -> None:
    with pytest.raises(door.ManifestInvalid, match=f"line 2 has the control character U\\+{ord(character):04X}"):
        door.admit(f"kind: Deployment\nvalue: a{character}b\n")


def texts_with_a_grammar() -> list[tuple[str | int, ...]]:
    data: tuple[str | int, ...] = ("spec", "score", "data")
    service: tuple[str | int, ...] = (*data, "services", 0)
    return [
        ("metadata", "name"),
        ("metadata", "namespace"),
        ("metadata", "labels", "x"),
        ("spec", "allowedGroups", 0),
        ("spec", "targetSelector", "matchLabels", "role"),
        ("spec", "targetSelector", "matchExpressions", 0, "key"),
        (*data, "init_container", "name"),
        (*service, "image"),
        (*service, "env", 0, "name"),
        (*service, "secret_env", 0, "secret", "key"),
        (*service, "volumes", 0, "host_path"),
    ]


@pytest.mark.parametrize("path", texts_with_a_grammar(), ids=lambda path: ".".join(map(str, path)))
def test_a_line_break_after_a_name_does_not_belong_to_it(path: tuple[str | int, ...]) -> None:
    document = copy()
    document["metadata"]["namespace"] = "default"
    place: Any = document
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] += "\n"
    (fault,) = faults(document)
    assert "\\u000a" in fault
    assert "allowed" in fault


def test_half_a_character_is_refused() -> None:
    document = copy()
    document["spec"]["score"]["data"]["services"][0]["env"][0]["value"] = "\ud800"
    (told,) = faults(document)
    assert told.endswith("half of a surrogate pair, which is no character")


@pytest.mark.clause("DEP-1")
def test_json_is_taken_as_programs_write_it() -> None:
    for indent in (None, 4, "\t"):
        (admitted,) = door.admit(json.dumps(BASE, indent=indent))
        assert admitted.manifest.metadata.name == "a"


def test_a_key_that_comes_twice_is_refused_in_json_too() -> None:
    with pytest.raises(door.ManifestInvalid, match="the key 'kind' comes a second time in one object"):
        door.admit('{"kind": "Deployment", "kind": "Deployment"}')


def test_text_with_half_a_character_is_refused() -> None:
    with pytest.raises(door.ManifestInvalid, match="not UTF-8"):
        door.admit("a: \ud800")


@pytest.mark.clause("DEP-9")
@given(st.randoms(use_true_random=False))
def test_the_order_of_keys_and_spelled_out_defaults_change_no_hash(random: Any) -> None:
    document = copy()
    service = document["spec"]["score"]["data"]["services"][0]
    service |= {"restart_policy": "unless-stopped", "ports": []}
    service["volumes"][0]["read_only"] = False
    document["metadata"]["namespace"] = "default"
    (one,) = door.admit(json.dumps(copy()))
    (other,) = door.admit(json.dumps(_shuffled(document, random)))
    assert one.spec_hash == other.spec_hash
    service["image"] = "s:2"
    (changed,) = door.admit(json.dumps(document))
    assert changed.spec_hash != one.spec_hash


def _shuffled(value: Any, random: Any) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        random.shuffle(keys)
        return {key: _shuffled(value[key], random) for key in keys}
    return [_shuffled(item, random) for item in value] if isinstance(value, list) else value


def _shortened(pattern: str) -> str:
    """All forms with all characters of a pattern, and fewer of them: long texts take seconds to generate."""
    for much, little in {"*": "{0,2}", "+": "{1,2}", "{0,127}": "{0,2}", "{64}": "{2}"}.items():
        pattern = pattern.replace(much, little)
    return pattern


@given(st.from_regex(_shortened(names.IMAGE_REFERENCE), fullmatch=True))
def test_an_image_reference_never_looks_like_an_option(reference: str) -> None:
    assert not reference.startswith("-")
    assert not set(reference) & set(" \n\t'\"\\$;")
