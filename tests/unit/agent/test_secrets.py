"""Deployments with secrets, as the control plane and a person at the device see them (AGT-10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.cli import main
from agent.runtime.base import ContainerSpec, RuntimeFailure, State
from agent.runtime.simulated import SimulatedRuntime
from agent.secrets.cache import SecretCache
from agent.secrets.resolution import Resolution
from agent.secrets.sources import Answers
from agent.wire.manifest import PodmanService, SecretEnvVar, SecretRef
from agent.wire.messages import DeploymentState, SecretsRequest
from tests.support.devices import Edge, ManualClock, Watched
from tests.support.fake_control import FakeControlPlane, score, service
from tests.unit.agent.kit import API, MIGRATE, faults, names

PASSWORD, TOKEN = SecretRef("db", "password"), SecretRef("mail", "token")
VALUE = "hunter2 'and' \"more\"\n$HOME — ✓"

pytestmark = pytest.mark.clause("AGT-10")


def needy(name: str = "api", **variables: SecretRef) -> PodmanService:
    wanted = variables or {"DB_PASSWORD": PASSWORD}
    return service(name, f"r.example/{name}:1", secret_env=[SecretEnvVar(*item) for item in wanted.items()])


@pytest.fixture
def runtime() -> Watched:
    return Watched(ManualClock())


@pytest.fixture
def edge(tmp_path: Path, control: FakeControlPlane, runtime: Watched) -> Edge:
    return Edge(tmp_path / "state", control, runtime=runtime, clock=runtime.clock)


@pytest.fixture
def api(edge: Edge, control: FakeControlPlane) -> str:
    """A converged deployment: init, ``api`` with a secret of the control plane, ``web`` without one."""
    control.secrets["db", "password"] = VALUE
    control.want("u1", score(needy(), service("web", "r.example/web:1"), init=MIGRATE))
    edge.go()
    edge.settle()
    assert control.says("u1", "converged")
    return "u1"


def asked(control: FakeControlPlane) -> list[SecretsRequest]:
    """Without what is asked for pulling images."""
    return [request for request in control.secret_requests if request.references]


def ids(edge: Edge) -> dict[str, str]:
    return {container.name: container.id for container in edge.runtime.containers()}


def end(edge: Edge, name: str, code: int = 137) -> None:
    assert isinstance(edge.runtime, SimulatedRuntime)
    edge.runtime.end(ids(edge)[name], code)


def again(control: FakeControlPlane, revision: int = 2) -> None:
    """What ``fleetctl retarget`` does: a new revision of the same spec."""
    control.want("u1", score(needy(), service("web", "r.example/web:1"), init=MIGRATE), revision=revision)


# Where values come from ----------------------------------------------------------------------------------------------


def test_a_value_reaches_the_container_exactly(edge: Edge, control: FakeControlPlane, runtime: Watched, api: str):
    assert runtime.env("api") == {"DB_PASSWORD": VALUE}
    assert asked(control)[0] == SecretsRequest(deployment=api, references=[PASSWORD])


def test_a_file_on_the_device_wins_and_asks_nobody(edge: Edge, control: FakeControlPlane, runtime: Watched):
    edge.put_secret("db", "password", "the device's own")
    control.secrets["db", "password"] = "the control plane's"
    control.want("u1", score(needy()))
    edge.go()
    assert runtime.env("api") == {"DB_PASSWORD": "the device's own"}
    assert asked(control) == []


def test_only_what_is_no_file_is_asked_for(edge: Edge, control: FakeControlPlane, runtime: Watched):
    edge.put_secret("db", "password", "local")
    control.secrets["mail", "token"] = "remote"
    control.want("u1", score(needy(A=PASSWORD, B=TOKEN, C=TOKEN)))
    edge.go()
    assert runtime.env("api") == {"A": "local", "B": "remote", "C": "remote"}
    assert [request.references for request in asked(control)] == [[TOKEN]]


# When they are resolved ----------------------------------------------------------------------------------------------


def test_a_pass_over_unchanged_containers_asks_nobody(edge: Edge, control: FakeControlPlane, api: str):
    before, times = ids(edge), len(asked(control))
    control.secrets["db", "password"] = "changed meanwhile"
    for _ in range(3):
        edge.go()
    edge.boot()
    edge.go()
    assert (ids(edge), len(asked(control))) == (before, times), "not watched, not even at the agent's start"
    assert control.says(api, "converged")


def test_a_retarget_replaces_only_what_uses_a_changed_value(
    edge: Edge, control: FakeControlPlane, runtime: Watched, api: str
):
    before = ids(edge)
    again(control, revision=2)
    edge.go()
    assert ids(edge) == before, "the value is what it was"
    control.secrets["db", "password"] = "rotated"
    again(control, revision=3)
    edge.go()
    after = ids(edge)
    assert {name for name in before if before[name] != after[name]} == {"migrate", "api"}
    assert [spec.name for spec in runtime.created[-2:]] == ["migrate", "api"], "the init container first (AGT-3)"
    assert runtime.env("api") == {"DB_PASSWORD": "rotated"}


def test_a_container_that_has_to_be_created_gets_the_value_of_now(
    edge: Edge, control: FakeControlPlane, runtime: Watched, api: str
):
    control.secrets["db", "password"] = "rotated"
    before = ids(edge)
    runtime.remove(before["web"])
    edge.go()
    after = ids(edge)
    assert {name for name in before if before[name] != after[name]} == {"migrate", "api", "web"}
    assert runtime.env("api") == {"DB_PASSWORD": "rotated"}


def test_an_order_at_the_device_resolves_anew_without_a_restart_of_the_agent(
    edge: Edge, control: FakeControlPlane, runtime: Watched, api: str
):
    control.secrets["db", "password"] = "rotated"
    edge.agent.store.order_refresh()
    edge.go()
    assert runtime.env("api") == {"DB_PASSWORD": "rotated"}
    times = len(asked(control))
    edge.settle()
    edge.go()
    assert len(asked(control)) == times, "once"


def test_an_order_outlives_an_agent_that_is_killed_over_it(
    edge: Edge, control: FakeControlPlane, runtime: Watched, api: str
):
    control.secrets["db", "password"] = "rotated"
    edge.agent.store.order_refresh()
    control.refuse_secrets_with = 503
    before = ids(edge)
    edge.go()
    assert ids(edge) == before, "a vault that does not answer is no reason to change anything"
    edge.boot()
    control.refuse_secrets_with = 0
    edge.go()
    assert runtime.env("api") == {"DB_PASSWORD": "rotated"}


def test_an_order_during_a_resolution_is_not_lost(edge: Edge, control: FakeControlPlane, runtime: Watched, api: str):
    keeper, asked_before = edge.agent._secrets, control.secrets["db", "password"]
    sources = keeper._sources

    class Interrupted:
        def ask(self, uid: str, needed: list[SecretRef]) -> Answers:
            answers = sources.ask(uid, needed)
            control.secrets["db", "password"] = "rotated"
            keeper.expire()
            return answers

    keeper._sources = Interrupted()  # type: ignore[assignment]
    again(control)
    edge.go()
    assert runtime.env("api") == {"DB_PASSWORD": asked_before}
    keeper._sources = sources
    edge.go()
    assert runtime.env("api") == {"DB_PASSWORD": "rotated"}


def test_the_command_gives_the_order(
    edge: Edge, control: FakeControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    config = tmp_path / "agent.toml"
    text = f'[server]\nurl = "{control.url}"\n[device]\nid = "edge-1"\n[agent]\nstate_dir = "{edge.state}"\n'
    config.write_text(text)
    assert main(["--config", str(config), "refresh-secrets"]) == 0
    assert "resolves all secrets anew when it runs next" in capsys.readouterr().out
    with edge.agent.store.lock():
        assert main(["--config", str(config), "refresh-secrets"]) == 0
    assert "resolves all secrets anew within 33 s" in capsys.readouterr().out
    assert edge.agent.store.is_refresh_ordered()
    config.write_text(text.replace(str(edge.state), str(tmp_path / "empty")))
    assert main(["--config", str(config), "refresh-secrets"]) == 1
    assert "edge-1 is not enrolled yet" in capsys.readouterr().err


# What cannot be resolved ---------------------------------------------------------------------------------------------


def test_all_that_is_missing_is_said_at_once_with_the_other_problems(edge: Edge, control: FakeControlPlane):
    edge.put_secret("mail", "token", "x").chmod(0o644)
    faults(edge).fail_pull = ["*web*"]
    both = needy("migrate", PASSWORD=PASSWORD)
    control.want("u1", score(needy(DB_PASSWORD=PASSWORD, TOKEN=TOKEN), service("web", "r.example/web:1"), init=both))
    edge.go()
    report = control.last("u1")
    assert (report.state, names(edge)) == (DeploymentState.FAILED, {})
    assert report.message.replace(str(edge.secrets), "DIR") == (
        "preflight failed: secret db/password for PASSWORD of migrate, DB_PASSWORD of api: DIR/db/password does not "
        "exist, and the control plane has no such secret for this device; "
        "secret mail/token for TOKEN of api: DIR/mail/token is open to every user of this device (mode 0644); "
        "run: chmod o= DIR/mail/token; "
        "image r.example/web:1: manifest unknown (simulated)"
    )


def test_one_that_is_gone_leaves_what_runs_and_heals_when_it_is_back(
    edge: Edge, control: FakeControlPlane, runtime: Watched, api: str
):
    before = ids(edge)
    value = control.secrets.pop(("db", "password"))
    again(control)
    end(edge, "web")
    edge.clock.forward(30)
    edge.go()
    assert control.last(api).state is DeploymentState.FAILED
    assert "preflight failed: secret db/password for DB_PASSWORD of api: " in control.last(api).message
    assert ids(edge) == before
    assert names(edge)["web"] is State.RUNNING, "a service that has all it needs is started again"
    control.secrets["db", "password"] = value
    edge.go()
    edge.settle()
    assert (control.says(api, "converged"), ids(edge)) == (True, before)


def test_a_value_that_no_process_can_take_is_refused_before_anything_is_stopped(
    edge: Edge, control: FakeControlPlane, api: str
):
    before = ids(edge)
    control.secrets["db", "password"] = "x" * 131_072
    again(control)
    edge.go()
    assert control.last(api).message == (
        "preflight failed: secret db/password for DB_PASSWORD of api: "
        "its value is too long for DB_PASSWORD: 131085 bytes with the name; allowed are 131072"
    )
    control.secrets["db", "password"] = "with\0NUL"
    again(control, revision=3)
    edge.go()
    assert "from the control plane: its value has a NUL character" in control.last(api).message
    assert ids(edge) == before


# Offline -------------------------------------------------------------------------------------------------------------


def test_an_offline_start_uses_what_is_kept(edge: Edge, control: FakeControlPlane, runtime: Watched, api: str):
    control.refuse_with = 503
    runtime.remove(ids(edge)["api"])
    edge.boot()
    edge.agent.reconcile()
    assert runtime.env("api") == {"DB_PASSWORD": VALUE}
    assert names(edge)["api"] is State.RUNNING


@pytest.mark.parametrize("lost", ["secrets.cache", "secrets.key"])
def test_offline_and_nothing_kept_nothing_is_replaced_but_what_crashed_is_started(
    edge: Edge, control: FakeControlPlane, runtime: Watched, api: str, lost: str
):
    before = ids(edge)
    (edge.state / lost).unlink()
    control.refuse_with = 503
    end(edge, "api")
    edge.boot()
    edge.clock.forward(30)
    edge.agent.reconcile()
    assert ids(edge) == before
    assert names(edge)["api"] is State.RUNNING
    entry = edge.agent.ledger.entry(api)
    assert entry is not None
    assert entry.message.replace(str(edge.secrets), "DIR") == (
        "preflight failed: secret db/password for DB_PASSWORD of api: DIR/db/password does not exist, and the control "
        "plane answered 503: come back later; no value is kept from before"
    )
    control.refuse_with = 0
    edge.go()
    edge.settle()
    assert (control.says(api, "converged"), ids(edge)) == (True, before)


def test_nothing_is_started_before_an_interrupted_init_when_values_are_lost(
    edge: Edge, control: FakeControlPlane, runtime: Watched, api: str
):
    end(edge, "web")
    runtime._set(runtime._saved.containers[ids(edge)["migrate"]], exit_code=3)
    (edge.state / "secrets.cache").unlink()
    control.refuse_with = 503
    edge.boot()
    edge.clock.forward(30)
    edge.agent.reconcile()
    assert names(edge)["web"] is State.EXITED


def test_what_a_source_could_not_confirm_is_asked_for_again(
    edge: Edge, control: FakeControlPlane, runtime: Watched, api: str
):
    control.secrets["db", "password"] = "rotated"
    control.refuse_secrets_with = 503
    again(control)
    edge.go()
    assert runtime.env("api") == {"DB_PASSWORD": VALUE}, "the vault is closed: what is kept goes on"
    control.refuse_secrets_with = 0
    edge.go()
    assert runtime.env("api") == {"DB_PASSWORD": "rotated"}


def test_secrets_of_a_deployment_that_is_gone_are_dropped(edge: Edge, control: FakeControlPlane, api: str):
    control.want("u2", score(needy("other")), name="other")
    edge.go()
    assert SecretCache(edge.agent.store).load().keys() == {api, "u2"}
    control.remove("u1")
    edge.go()
    edge.go()  # the first removes the container, whose log may be asked for until then
    assert SecretCache(edge.agent.store).load().keys() == {"u2"}
    edge.boot()
    control.drop("u2")
    edge.go()
    assert not (edge.state / "secrets.cache").exists()


# Where values must not be --------------------------------------------------------------------------------------------


def test_a_log_in_an_error_shows_no_value(edge: Edge, control: FakeControlPlane, runtime: Watched, api: str):
    end(edge, "api", 3)
    container = runtime._saved.containers[ids(edge)["api"]]
    runtime._set(container, log=f"cannot log in with {VALUE}\nnor with {VALUE.splitlines()[0]}, code 3")
    edge.go()
    assert control.last(api).message == (
        "service api exited with code 3: cannot log in with [secret db/password]\nnor with [secret db/password], code 3"
    )


def test_a_runtime_that_repeats_what_it_was_given_tells_nobody(
    edge: Edge, control: FakeControlPlane, runtime: Watched, monkeypatch: pytest.MonkeyPatch
):
    def refuse(spec: ContainerSpec) -> str:
        raise RuntimeFailure(f"invalid: {dict(spec.env)['DB_PASSWORD']!r}, {spec}")

    monkeypatch.setattr(runtime, "create", refuse)
    control.secrets["db", "password"] = "hunter2-hunter2"
    control.want("u1", score(needy()))
    edge.go()
    assert control.last("u1").message.startswith(
        "container api cannot be created: invalid: '[secret db/password]', ContainerSpec(name='api'"
    )
    assert "hunter2" not in control.last("u1").message


def test_a_deployment_without_secrets_has_the_hashes_it_always_had(edge: Edge, control: FakeControlPlane):
    control.want("u1", score(API, init=MIGRATE))
    edge.go()
    owner = edge.agent.reconciler._tools.owner
    hashes = {c.name: [v for k, v in c.labels.items() if k.endswith("-hash")] for c in edge.runtime.containers()}
    assert hashes == {"api": [owner.keyed_hash(API)], "migrate": [owner.keyed_hash(score(API, init=MIGRATE))]}
    assert not (edge.state / "secrets.key").exists()


@pytest.mark.parametrize(
    ("value", "text", "shown"),
    [
        ("hunter2", "with hunter2, again hunter2", "with [secret db/password], again [secret db/password]"),
        ("two\nlines here", "lines here: 3", "[secret db/password]: 3"),
        ('a "quoted"\tone', 'error: "a \\"quoted\\"\\tone"', 'error: "[secret db/password]"'),
        ("größer", 'error: "gr\\u00f6\\u00dfer"', 'error: "[secret db/password]"'),
        ("123", "exit code 123", "exit code 123"),
        ("", "nothing", "nothing"),
    ],
)
def test_values_are_found_in_the_shapes_that_programs_print(value: str, text: str, shown: str):
    assert Resolution({PASSWORD: value}).hidden_in(text) == shown


def test_of_two_values_that_overlap_the_longer_one_is_hidden_whole():
    both = Resolution({PASSWORD: "hunter", TOKEN: "hunter-and-more"})
    assert both.hidden_in("hunter-and-more") == "[secret mail/token]"
    assert "hunter" not in repr(both)
