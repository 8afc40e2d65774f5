"""Any manifest that keeps the rules gets in, whole, from YAML and from JSON."""

from __future__ import annotations

import posixpath
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.wire import manifest as wire
from agent.wire import names
from fleet.core import door

# Words that YAML would take for something else are among them, and what only few names may have.
words = ["a", "no", "on", "null", "1e3", "0x1f", "1_0", "2026-12-01", "9.5", "a-b.c"]
labels = st.dictionaries(
    st.sampled_from([*words, "example.com/role", "A_b"]), st.sampled_from([*words, "", "X_y.z-1"]), max_size=3
)
subdomains = st.sampled_from([*(word for word in words if "_" not in word), "a.b-c.d", "0"])
texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00", exclude_categories=["Cs"]), max_size=30)
values = texts | st.sampled_from(
    [*words, "22:22", "'", '"', "{}", "[", "# no", " a ", "a\n b\n", "\t", "\x9b", "\ufeff"]
)
paths = st.sampled_from(["/", "/a", "/a/", "/a/b", "/a b", "/..a", "/ö", "/'", "/#", "/a//b", "/-"])
secrets = st.builds(wire.SecretRef, name=st.sampled_from([*words, "_a"]), key=st.sampled_from([*words, "-"]))
container_names = st.sampled_from([*words, "A_1.-", "x" * 63])
images = st.sampled_from(
    ["a:1", "r.example:5000/a/b:no", "a@sha256:" + "0" * 64, "1.5:1_0", "a__b--c/d:X@sha256:" + "a" * 64]
)
policies = st.sampled_from(["no", "always", "unless-stopped", "on-failure", "on-failure:3"])
operators = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"])


@st.composite
def containers(draw: st.DrawFn, name: str, port: int | None) -> wire.PodmanService:
    variables = draw(st.lists(st.sampled_from(["A", "_", "NO", "b1", "Y"]), max_size=4, unique=True))
    split = draw(st.integers(0, len(variables)))
    targets = draw(st.lists(paths.filter(lambda path: path != "/"), max_size=3, unique_by=posixpath.normpath))
    address = draw(st.sampled_from(["", "127.0.0.1:", "[::1]:"]))
    suffix = draw(st.sampled_from(["", "/tcp", "/udp"]))
    return wire.PodmanService(
        name=name,
        image=draw(images),
        ports=[f"{address}{port}:{draw(st.integers(1, 65535))}{suffix}"] if port else [],
        env=[wire.EnvVar(name=each, value=draw(values)) for each in variables[:split]],
        secret_env=[wire.SecretEnvVar(name=each, secret=draw(secrets)) for each in variables[split:]],
        volumes=[
            wire.Volume(host_path=draw(paths), container_path=to, read_only=draw(st.booleans())) for to in targets
        ],
        restart_policy=draw(policies),
    )


@st.composite
def scores(draw: st.DrawFn) -> wire.PodmanV0:
    init, *services = draw(st.lists(container_names, min_size=2, max_size=4, unique=True))
    ports = draw(st.lists(st.integers(1, 65535), min_size=len(services), max_size=len(services), unique=True))
    return wire.PodmanV0(
        services=[draw(containers(name, port)) for name, port in zip(services, ports, strict=True)],
        init_container=draw(st.none() | containers(init, None)),
    )


@st.composite
def selectors(draw: st.DrawFn) -> wire.LabelSelector:
    requirements = [wire.SelectorRequirement(key=names.DEVICE_ID_LABEL, operator="Exists")]
    for operator in draw(st.lists(operators, max_size=3)):
        chosen = draw(st.lists(st.sampled_from(words), min_size=1, max_size=3)) if operator in ("In", "NotIn") else []
        requirements.append(
            wire.SelectorRequirement(key=draw(st.sampled_from(words)), operator=operator, values=chosen)
        )
    return wire.LabelSelector(matchLabels=draw(labels), matchExpressions=requirements)


manifests = st.builds(
    wire.Deployment,
    apiVersion=st.just(wire.API_VERSION),
    kind=st.just("Deployment"),
    metadata=st.builds(
        wire.Metadata,
        name=subdomains,
        namespace=st.sampled_from(["a", "no", "1e3", "a-b", "x" * 63]),
        labels=labels,
        annotations=st.dictionaries(st.sampled_from(words), values, max_size=2),
    ),
    spec=st.builds(
        wire.DeploymentSpec,
        targetSelector=selectors(),
        score=st.builds(wire.ReconcileScore, type=st.just("PodmanV0"), data=scores()),
        allowedGroups=st.lists(subdomains, max_size=3),
    ),
)


def spelled_out(value: Any) -> Any:
    """The same manifest with every default written down."""
    if isinstance(value, msgspec.Struct):
        return {name: spelled_out(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, list):
        return [spelled_out(item) for item in value]
    return value


@pytest.mark.clause("DEP-2", "DEP-3", "DEP-6", "DEP-9")
@settings(max_examples=60)
@given(manifests)
def test_a_manifest_that_keeps_the_rules_comes_through_whole(manifest: wire.Deployment) -> None:
    short, long = msgspec.to_builtins(manifest), spelled_out(manifest)
    texts = [msgspec.json.encode(short), msgspec.json.encode(long), yaml.safe_dump(short), yaml.safe_dump(long)]
    admitted = [each for text in texts for each in door.admit(text)]
    assert [each.manifest for each in admitted] == [manifest] * 4
    assert len({each.spec_hash for each in admitted}) == 1
    again = {**short, "spec": admitted[0].spec}
    assert door.admit(msgspec.json.encode(again)) == admitted[:1]
