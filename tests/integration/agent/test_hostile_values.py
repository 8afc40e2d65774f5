"""Hostile values in every field of a service: refused by the control plane with a path, or what Podman then has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.reconcile.labels import Owner
from agent.reconcile.wanted import WantedContainer, resolve
from agent.runtime.podman import PodmanRuntime
from agent.wire.messages import DeploymentDocument
from agent.wire.rules import Fault
from fleet.core.door import ManifestInvalid, admit
from tests.support.podman import Containers

OWNER = Owner("0f8fad5b-d9cb-469f-a165-70867728950e", b"k" * 32)
FEW = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
MANY = settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])

PODMANS_OWN_VARIABLES = {"PATH", "TERM", "HOSTNAME", "HOME", "container"}

#: Text that has broken shells, terminals, YAML, C strings, file systems and eyes.
NASTY = [
    "", " ", "\n", "\r\n", "\t", "\x00", "\x1b[2J", "\x7f", "'", '"', "`id`", "$(id)", "$HOME", "a;b", "a&b", "a|b",
    "*", "--privileged", "-v", "--", "..", "../x", "/", "\\", "%s%n", "{{.}}", "é", "\u0430pi", "\uff41pi", "api\u200b",
    "\u202eipa", "😀", "İ", "a" * 64, "a" * 300, "x\n--privileged", "#", "!ruby/object", "null", "~",
]  # fmt: skip
REFUSED: dict[str, list[Any]] = {
    "name": [*(text for text in NASTY if text not in ("null",)), ".a", "-a", "_a", "a/b", "a:b", "a b", "api\n",
             7, None, []],
    "image": [
        *NASTY, "api", "API:1", "api:1 ", "api:1\n", "--flags:1", "http://host/api:1", "host/../api:1", "api:",
        "api@sha256:12", f"api@sha256:{'A' * 64}", f"api@sha256:{'a' * 64}\n", f"api@md5:{'a' * 32}", "api:1@", 7, None,
    ],
    "ports": [
        "ports", [8080], *([text] for text in NASTY),
        *([text] for text in (
            "0:80", "80:0", "65536:80", "80:65536", "99999:1", "8081-8080:1-2", "1-2:1-3", "1-3:1-2", "80", "80:",
            ":80", "-1:80", "+1:80", "80:80/sctp", "80:80/TCP", "1.2.3:80:80", "256.0.0.1:80:80", "::1:80:80",
            "[::1:80:80",
            "[::g]:80:80", "[fe80::1%eth0]:80:80", "host:80:80", " 80:80", "80:80\n", "٨٠:80", "8 0:80", "1e3:80",
        )),
        ["80:80", "80:81"], ["80-90:80-90", "85:1"], ["127.0.0.1:80:80", "80:81"], ["1-65535:1-65535", "1:1"],
    ],
    "env": [
        *([{"name": text, "value": ""}] for text in NASTY if text not in ("null", "a" * 64)),
        [{"name": "A=B"}], [{"name": "1A"}], [{"name": "A B"}], [{"name": "A\n"}], [{"name": "A", "value": "\x00"}],
        [{"name": "A", "value": "a\x00b"}], [{"name": "A", "value": "x" * 131_072}],
        [{"name": "A", "value": "x" * 999_999}],
        [{"name": "A", "value": "é" * 65_536}], [{"name": "A", "value": 1}], [{"name": "A", "value": None}],
        [{"name": "A"}, {"name": "A"}], [{"value": "x"}], [{"name": "A", "valeu": "x"}], ["A=B"], {"A": "B"},
    ],
    "secret_env": [
        [{"name": "A", "secret": {"name": "../x", "key": "k"}}], [{"name": "A", "secret": {"name": "n", "key": ".."}}],
        [{"name": "A", "secret": {"name": "n", "key": "a/b"}}], [{"name": "A", "secret": {"name": "", "key": "k"}}],
        [{"name": "A", "secret": "n/k"}], [{"name": "A", "value": "plain"}],
    ],
    "volumes": [
        *([{"host_path": text, "container_path": "/data"}] for text in NASTY if text != "/"),
        *([{"host_path": "/srv", "container_path": text}] for text in NASTY),
        *([{"host_path": "/srv", "container_path": text}] for text in (
            "//", "/.", "/./", "/./.", "//.//", "/a/..", "/a/../..", "/../a", "/a:b", "/a\nb", "data", "./data",
            "/a/../b",
        )),
        *([{"host_path": text, "container_path": "/data"}] for text in ("/a:ro", "/srv/..", "/a\x00", "~/a", "/a\n")),
        [{"host_path": "/a", "container_path": "/d"}, {"host_path": "/b", "container_path": "/d/"}],
        [{"host_path": "/a", "container_path": "/d"}, {"host_path": "/b", "container_path": "//d"}],
        [{"host_path": "/a", "container_path": "/d"}, {"host_path": "/b", "container_path": "/./d"}],
        [{"host_path": "/srv", "container_path": "/data", "read_only": "yes"}], ["/srv:/data"],
        [{"host_path": "/srv", "container_path": "/" + "a" * 5000}],
    ],
    "restart_policy": [
        *NASTY, "On-Failure", "on-failure:", "on-failure:0", "on-failure:-1", "on-failure:99999", "on-failure:1:2",
        "always ", "always\n", "unless_stopped", 1, None, False,
    ],
}  # fmt: skip


#: What any text has to be like, at the least, to be taken.
GRAMMAR_OF_TEXT: dict[str, Callable[[str], object]] = {
    "name": re.compile(r"[a-zA-Z0-9][\w.-]*", re.ASCII).fullmatch,
    "image": re.compile(r"[\w.:/-]+(:[\w.-]+|@sha256:[0-9a-f]{64})", re.ASCII).fullmatch,
    "ports": re.compile(r"[0-9.:-]+(/tcp|/udp)?", re.ASCII).fullmatch,
    "env": re.compile(r"[A-Za-z_]\w*", re.ASCII).fullmatch,
    "secret_env": re.compile(r"[A-Za-z_]\w*", re.ASCII).fullmatch,
    "volumes": re.compile(r"/[^:\x00-\x1f]+").fullmatch,
    "restart_policy": re.compile(r"no|always|unless-stopped|on-failure(:[1-9][0-9]*)?").fullmatch,
}


def a_service(**fields: Any) -> dict[str, Any]:
    return {"name": "api", "image": "host/api:1", **fields}


def manifest(service: Mapping[str, Any]) -> str:
    """JSON, which escapes what would not survive as text."""
    return json.dumps(
        {
            "apiVersion": "fleet.nationtech.io/v1alpha1",
            "kind": "Deployment",
            "metadata": {"name": "hostile"},
            "spec": {
                "targetSelector": {"matchLabels": {"role": "analyzer"}},
                "score": {"type": "PodmanV0", "data": {"services": [service]}},
            },
        }
    )


def admitted(service: Mapping[str, Any]) -> WantedContainer:
    """What an agent makes of it.

    Raises:
        ManifestInvalid: from the door.
    """
    (found,) = admit(manifest(service))
    score = found.manifest.spec.score.data
    document = DeploymentDocument(uid="u1", namespace="default", name="hostile", revision=1, score=score)
    return resolve(document, OWNER).services[0]


def refused(service: Mapping[str, Any]) -> list[Fault]:
    """The door's faults; none when it takes the service."""
    try:
        admitted(service)
    except ManifestInvalid as refusal:
        return list(refusal.faults)
    return []


@pytest.mark.clause("DEP-2", "DEP-3", "DEP-5")
@pytest.mark.parametrize("field", REFUSED)
def test_what_a_field_cannot_be_is_refused_with_its_path(field: str):
    for value in REFUSED[field]:
        faults = refused(a_service(**{field: value}))
        assert faults, f"{value!r} was taken"
        for fault in faults:
            assert fault.path.startswith(f"spec.score.data.services[0].{field}"), f"{value!r}: {fault}"
            assert fault.message.isprintable(), f"{value!r}: {fault!r}"


def test_a_device_may_show_all_of_its_files_to_a_container_but_not_replace_the_containers_own():
    assert refused(a_service(volumes=[{"host_path": "/", "container_path": "/host", "read_only": True}])) == []
    (fault,) = refused(a_service(volumes=[{"host_path": "/", "container_path": "/./"}]))
    assert fault.message == "is the root of the container; allowed: a path below /"


def test_half_a_character_is_not_text():
    (fault,) = refused(a_service(env=[{"name": "A", "value": "\ud800"}]))
    assert "half of a surrogate pair" in fault.message


@pytest.mark.clause("DEP-2", "DEP-3")
@MANY
@given(field=st.sampled_from(sorted(REFUSED)), text=st.text(max_size=40))
def test_any_text_is_refused_with_a_path_or_has_the_grammar_of_its_field(field: str, text: str):
    shapes = {
        "ports": [text],
        "env": [{"name": text, "value": text}],
        "secret_env": [{"name": text, "secret": {"name": text, "key": text}}],
        "volumes": [{"host_path": text, "container_path": text}],
    }
    faults = refused(a_service(**{field: shapes.get(field, text)}))
    if faults:
        assert all(fault.path.startswith(f"spec.score.data.services[0].{field}") for fault in faults)
    else:
        assert GRAMMAR_OF_TEXT[field](text)


# What is taken, Podman gets as it is ---------------------------------------------------------------------------------

names = st.from_regex(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}", fullmatch=True)
variable_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,30}", fullmatch=True).filter(lambda name: name != "PATH")
values = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60),
    st.sampled_from([text for text in NASTY if "\x00" not in text]),
    st.just("x" * 131_000),
)
addresses = st.sampled_from(["", "[::ffff:127.0.0.1]:", "0.0.0.0:", "127.0.0.1:", "127.9.8.7:", "[::1]:", "[::]:"])


@st.composite
def port_entries(draw: st.DrawFn) -> str:
    first, length = draw(st.integers(1, 65_533)), draw(st.integers(0, 2))
    inner = draw(st.integers(1, 65_533))
    tail = f"-{first + length}:{inner}-{inner + length}" if length else f":{inner}"
    return f"{draw(addresses)}{first}{tail}{draw(st.sampled_from(['', '/tcp', '/udp']))}"


#: No slash, colon or control character, which the grammar has no room for; no dots alone, which are no name.
path_parts = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/:"), min_size=1, max_size=12
).filter(lambda part: part.strip(".") != "")
policies = st.sampled_from(["no", "on-failure", "on-failure:1", "on-failure:9999", "always", "unless-stopped"])


@st.composite
def services(draw: st.DrawFn) -> dict[str, Any]:
    """One that the door takes; host paths are below ``{folder}``."""
    env = draw(st.dictionaries(variable_names, values, max_size=4))
    places = st.tuples(path_parts, path_parts, st.booleans())
    volumes = draw(st.lists(places, max_size=2, unique_by=(lambda v: v[0], lambda v: v[1])))
    return {
        "name": draw(names),
        "ports": draw(st.lists(port_entries(), max_size=1)),
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "volumes": [
            {"host_path": f"{{folder}}/{host}", "container_path": f"/data/{inner}", "read_only": read_only}
            for host, inner, read_only in volumes
        ],
        "restart_policy": draw(policies),
    }


@pytest.fixture
def shown(containers: Containers) -> Callable[[WantedContainer], dict[str, Any]]:
    """Creates a container, and removes it again: what Podman says of it, and what the agent sees in the list."""
    runtime = PodmanRuntime(str(containers.podman.socket))

    def create(wanted: WantedContainer) -> dict[str, Any]:
        if runtime.image(wanted.spec.image) is None:
            runtime.pull(wanted.spec.image)
        identity = runtime.create(wanted.spec)
        try:
            (found,) = json.loads(containers.podman.cli("inspect", "--type", "container", identity))
            return found | {"listed": next(c for c in runtime.containers() if c.id == identity)}
        finally:
            runtime.remove(identity)

    return create


@pytest.mark.clause("DEP-3", "AGT-4")
@FEW
@given(service=services())
def test_podman_gets_exactly_what_was_written(
    containers: Containers,
    shown: Callable[[WantedContainer], dict[str, Any]],
    tmp_path: Path,
    service: dict[str, Any],
):
    volumes = [v | {"host_path": v["host_path"].replace("{folder}", str(tmp_path), 1)} for v in service["volumes"]]
    for volume in volumes:
        Path(volume["host_path"]).mkdir(exist_ok=True)
    wanted = admitted(service | {"image": containers.image("done"), "volumes": volumes})
    found = shown(wanted)
    assert found["Name"] == found["listed"].name == service["name"]
    env = {variable["name"]: variable["value"] for variable in service["env"]}
    assert {f"{name}={value}" for name, value in env.items()} <= set(found["Config"]["Env"])
    assert {text.partition("=")[0] for text in found["Config"]["Env"]} <= env.keys() | PODMANS_OWN_VARIABLES
    assert wanted.spec.labels.items() <= found["Config"]["Labels"].items()
    assert set(found["listed"].ports) == set(wanted.spec.ports)
    assert [(m["Source"], m["Destination"], not m["RW"]) for m in found["Mounts"]] == [
        (volume["host_path"], volume["container_path"], volume["read_only"]) for volume in volumes
    ]
    kind, _, tries = service["restart_policy"].partition(":")
    policy = found["HostConfig"]["RestartPolicy"]
    assert (policy["Name"], policy["MaximumRetryCount"]) == (kind, int(tries or 0))
    assert found["HostConfig"]["Privileged"] is False
    assert found["Config"]["Cmd"] == ["sh", "-c", "echo migrated"]
