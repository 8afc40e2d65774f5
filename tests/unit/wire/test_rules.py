"""Rules between fields, against plain definitions written down a second time."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.wire import names, ports, rules
from agent.wire.manifest import EnvVar, PodmanService, PodmanV0, SecretEnvVar, SecretRef, Volume

addresses = st.sampled_from(["", "0.0.0.0:", "127.0.0.1:", "10.0.0.1:", "[::1]:", "[::]:"])


@st.composite
def mappings(draw: st.DrawFn) -> str:
    """Few ports, so that many clash."""
    host, size = draw(st.integers(80, 84)), draw(st.integers(0, 2))
    spread = f"{host}-{host + size}:1-{1 + size}" if size else f"{host}:1"
    return f"{draw(addresses)}{spread}{draw(st.sampled_from(['', '/tcp', '/udp']))}"


def score(*published: list[str]) -> PodmanV0:
    return PodmanV0(services=[PodmanService(name=f"s{n}", image="a:1", ports=each) for n, each in enumerate(published)])


def published_twice(texts: list[str]) -> set[int]:
    """Which entries have a port that an earlier one has, by comparing each with each."""
    spread = [ports.parse(text) for text in texts]
    pairs = combinations(range(len(texts)), 2)
    within = {n for n, own in enumerate(spread) if any(a.clashes(b) for a, b in combinations(own, 2))}
    return within | {b for a, b in pairs if any(x.clashes(y) for x in spread[a] for y in spread[b])}


@pytest.mark.clause("DEP-5")
@given(st.lists(mappings(), min_size=1, max_size=6), st.integers(0, 6))
def test_each_entry_that_publishes_a_taken_port_is_named_once(texts: list[str], cut: int) -> None:
    first, second = texts[:cut], texts[cut:]
    told = [fault.path for fault in rules.check_score(score(first, second))]
    paths = [f"spec.score.data.services[0].ports[{n}]" for n in range(len(first))]
    paths += [f"spec.score.data.services[1].ports[{n}]" for n in range(len(second))]
    assert told == [path for n, path in enumerate(paths) if n in published_twice(texts)]


@pytest.mark.clause("DEP-5")
def test_a_port_that_is_taken_is_told_with_its_owner() -> None:
    (fault,) = rules.check_score(score(["8000-8010:1-11"], ["127.0.0.1:8005-8006:1-2"]))
    assert str(fault) == (
        "spec.score.data.services[1].ports[0]: "
        "host port 8005/tcp is published by spec.score.data.services[0].ports[0] already"
    )


@pytest.mark.clause("DEP-3")
def test_every_port_may_be_published_once_for_both_protocols() -> None:
    assert rules.check_score(score(["1-65535:1-65535/tcp", "1-65535:1-65535/udp"])) == []


@pytest.mark.clause("DEP-3")
def test_ranges_that_would_fill_the_memory_are_refused_before_they_are_spread_out() -> None:
    many = [f"10.{n}.{m}.1:1-65535:1-65535" for n in range(64) for m in range(256)]
    (fault,) = rules.check_score(score(many))
    assert str(fault) == (
        "spec.score.data: publishes 1073725440 ports; allowed: 131070, which is each port once for tcp and udp"
    )


@pytest.mark.clause("DEP-5")
@given(st.lists(st.sampled_from("ABC"), max_size=4), st.lists(st.sampled_from("ABC"), max_size=4))
def test_each_variable_that_comes_again_is_named(env: list[str], secrets: list[str]) -> None:
    service = PodmanService(
        name="s",
        image="a:1",
        env=[EnvVar(name=name, value="s3cr3t") for name in env],
        secret_env=[SecretEnvVar(name=name, secret=SecretRef(name="x", key="y")) for name in secrets],
    )
    faults = rules.check_score(PodmanV0(services=[service]))
    assert len(faults) == len(env + secrets) - len({*env, *secrets})
    assert not any("s3cr3t" in str(fault) for fault in faults)


@pytest.mark.clause("DEP-5")
def test_two_mounts_on_one_place_are_refused_however_they_are_written() -> None:
    volumes = [Volume(host_path="/a", container_path="/data"), Volume(host_path="/b", container_path="/data/")]
    (fault,) = rules.check_score(PodmanV0(services=[PodmanService(name="s", image="a:1", volumes=volumes)]))
    assert fault.path == "spec.score.data.services[0].volumes[1].container_path"


@pytest.mark.clause("DEP-3")
@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (names.DNS_LABEL, ["a", "a-1", "0"], ["", "-a", "a-", "A", "a.b", "a" * 64, "a\n"]),
        (names.DNS_SUBDOMAIN, ["a", "a.b-c.d"], ["", ".a", "a..b", "a.-b", "a_b"]),
        (names.LABEL_KEY, ["role", "example.com/role", "A_b.c"], ["", "/a", "a/", "a/b/c", "-a", "Ex.com/a"]),
        (names.LABEL_VALUE, ["", "a", "A_b.c-d"], ["-a", "a-", "a b", "a" * 64]),
        (names.CONTAINER_NAME, ["a", "A_1.b-"], ["", "-a", ".a", "a/b", "a b"]),
        (names.ENV_NAME, ["A", "_a1"], ["", "1A", "A-B", "A=B"]),
        (names.SECRET_PART, ["a", "_a", "-a"], ["", ".", "..", ".hidden", "a/b"]),
        (
            names.IMAGE_REFERENCE,
            ["a:1", "r.example:5000/a/b:x", "a@sha256:" + "0" * 64, "a:1@sha256:" + "0" * 64, "Reg.example/a:1"],
            ["a", "a:", ":1", "A:1", "-a:1", "a:1 b", "a@sha256:0", "a/:1", "a//b:1", "a@md5:" + "0" * 32],
        ),
        (names.ABSOLUTE_PATH, ["/", "/a/b", "/a..b", "/..a"], ["", "a", "/..", "/a/..", "/a/../b", "/a:b", "/a\nb"]),
        (
            names.RESTART_POLICY,
            ["no", "always", "unless-stopped", "on-failure", "on-failure:5"],
            ["", "No", "on-failure:", "on-failure:0", "on-failure:-1", "never"],
        ),
    ],
)
def test_the_grammars_take_what_is_meant_and_nothing_else(pattern: str, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not names.fits(pattern, text)] == []
    assert [text for text in bad if names.fits(pattern, text)] == []
