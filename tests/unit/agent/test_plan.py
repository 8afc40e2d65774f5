"""The plan as a pure function: what was found, and what shall be done about it."""

from __future__ import annotations

import pytest

from agent.reconcile.plan import STUCK_SECONDS, Create, Remove, Settings, Start, Unpause
from agent.reconcile.wanted import resolve
from agent.runtime.base import State
from agent.wire.manifest import EnvVar, PodmanV0
from agent.wire.messages import DeploymentDocument, DeploymentState
from tests.support.fake_control import score, service
from tests.unit.agent.plan_kit import (
    API,
    JOB,
    MIGRATE,
    NOW,
    OWNER,
    WEB,
    changed,
    look,
    running_as_wanted,
    wanted,
)


@pytest.mark.clause("AGT-6")
def test_all_well_is_converged_and_needs_nothing():
    target = wanted(score(API, init=MIGRATE))
    result = look(target, running_as_wanted(target))
    assert result.steps == ()
    assert result.verdict.state is DeploymentState.CONVERGED
    assert result.verdict.images == {"migrate": "sha256:image-migrate", "api": "sha256:image-api"}


@pytest.mark.clause("AGT-2")
def test_the_init_container_goes_first_and_alone():
    target = wanted(score(API, init=MIGRATE))
    result = look(target, [])
    assert result.steps == (Create(target.init),)
    assert [item.name for item in result.coming] == ["migrate", "api"], "the preflight must know of both"


@pytest.mark.clause("AGT-3")
@pytest.mark.case("P5")
@pytest.mark.parametrize(
    "found",
    [
        {"state": State.CREATED, "finished_at": 0.0},
        {"state": State.CREATED},
        {"state": State.EXITED, "started_at": NOW - 50, "finished_at": NOW - 60},
        {"state": State.EXITED, "started_at": 0.0, "finished_at": 0.0},
    ],
    ids=["power loss before its end", "power loss in a second run", "finished before started", "never ran"],
)
def test_an_init_that_only_looks_finished_runs_again(found: dict[str, object]):
    target = wanted(score(API, init=MIGRATE))
    containers = changed(running_as_wanted(target), "migrate", **found)
    result = look(target, containers)
    assert result.steps == (Remove("id-0", "migrate"), Create(target.init))
    assert result.verdict.state is DeploymentState.PROGRESSING


@pytest.mark.clause("AGT-3")
def test_a_run_of_a_millisecond_that_seems_to_end_before_its_start_is_completed():
    target = wanted(score(API, init=MIGRATE))
    containers = changed(running_as_wanted(target), "migrate", started_at=NOW - 90, finished_at=NOW - 90.002)
    assert look(target, containers).steps == ()


@pytest.mark.clause("AGT-3")
def test_a_live_init_of_the_right_hash_is_adopted():
    target = wanted(score(API, init=MIGRATE))
    containers = changed(running_as_wanted(target)[:1], "migrate", state=State.RUNNING, finished_at=0.0)
    result = look(target, containers)
    assert result.steps == ()
    assert result.verdict.message == "init container migrate runs since 2026-11-30 00:51:40 UTC"


@pytest.mark.clause("AGT-3")
def test_any_field_of_the_score_runs_the_init_again_but_keeps_other_services():
    before = wanted(score(API, WEB, init=MIGRATE))
    after = wanted(score(API, service("web", "r.example/web:2", ports=["8081:80"]), init=MIGRATE))
    containers = running_as_wanted(before)
    result = look(after, containers)
    assert result.steps == (Remove("id-0", "migrate"), Create(after.init))

    migrated = [running_as_wanted(after)[0], *containers[1:]]
    result = look(after, migrated)
    assert result.steps == (Remove("id-2", "web"), Create(after.services[1])), "api keeps running"


@pytest.mark.clause("AGT-2")
def test_a_failed_init_is_said_first_and_tried_again_at_the_next_pass():
    target = wanted(score(API, init=MIGRATE))
    failed = changed(running_as_wanted(target), "migrate", exit_code=3, log="no route to database")
    first = look(target, failed, retry=True)
    assert first.steps == ()
    assert first.verdict.state is DeploymentState.FAILED
    assert first.verdict.message == "init container migrate failed with exit code 3: no route to database"

    second_look = look(target, failed, first.memory)
    assert second_look.steps == (), "only a regular pass tries again"

    next_pass = look(target, failed, first.memory, retry=True)
    assert next_pass.steps == (Remove("id-0", "migrate"), Create(target.init))
    assert next_pass.verdict.state is DeploymentState.FAILED, "still failed until it succeeds"

    well = look(target, running_as_wanted(target), next_pass.memory)
    assert well.verdict.state is DeploymentState.CONVERGED


@pytest.mark.clause("AGT-2")
def test_an_init_has_a_time_limit_only_where_the_device_sets_one():
    target = wanted(score(API, init=MIGRATE))
    live = changed(running_as_wanted(target)[:1], "migrate", state=State.RUNNING, finished_at=0.0)
    assert look(target, live).steps == ()
    limited = look(target, live, settings=Settings(init_timeout_seconds=60))
    assert limited.steps == (Remove("id-0", "migrate"),)
    assert limited.verdict.message == "init container migrate did not end within 60 s"
    assert look(target, [], limited.memory).steps == (), "held until the next pass"
    assert look(target, [], limited.memory, retry=True).steps == (Create(target.init),)


@pytest.mark.clause("AGT-3")
def test_an_init_taken_out_of_the_score_is_removed():
    before, after = wanted(score(API, init=MIGRATE)), wanted(score(API))
    assert look(after, running_as_wanted(before)).steps == (Remove("id-0", "migrate"),)


@pytest.mark.clause("AGT-4")
@pytest.mark.parametrize(
    "other",
    [
        {"image": "r.example/api:2"},
        {"ports": ["8082:80"]},
        {"env": [EnvVar("A", "1")]},
        {"restart_policy": "always"},
    ],
)
def test_a_change_of_one_service_replaces_that_one_only(other: dict[str, object]):
    before = wanted(score(API, WEB))
    fields = {"name": "api", "image": "r.example/api:1", "ports": ["8080:80"], **other}
    after = wanted(score(service(**fields), WEB))  # type: ignore[arg-type]
    assert look(after, running_as_wanted(before)).steps == (Remove("id-0", "api"), Create(after.services[0]))


@pytest.mark.clause("AGT-4")
def test_services_that_left_the_score_are_removed():
    before, after = wanted(score(API, WEB)), wanted(score(API))
    result = look(after, running_as_wanted(before))
    assert result.steps == (Remove("id-1", "web"),)


@pytest.mark.clause("AGT-4")
def test_a_port_that_moves_between_services_is_free_before_it_is_taken():
    before = wanted(score(API, WEB))
    swapped = wanted(score(service("api", API.image, ports=["8081:80"]), service("web", WEB.image, ports=["8080:80"])))
    kinds = [type(step).__name__ for step in look(swapped, running_as_wanted(before)).steps]
    assert kinds == ["Remove", "Remove", "Create", "Create"]


@pytest.mark.clause("AGT-7")
@pytest.mark.case("P2")
@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"state": State.PAUSED}, Unpause("id-0", "api")),
        ({"state": State.CREATED, "started_at": 0.0}, Start("id-0", "api")),
        ({"state": State.EXITED, "exit_code": 0, "finished_at": NOW - 1}, Start("id-0", "api")),
        ({"state": State.EXITED, "exit_code": 137, "finished_at": NOW - 1}, Start("id-0", "api")),
    ],
)
def test_drift_is_repaired(found: dict[str, object], expected: object):
    target = wanted(score(API))
    result = look(target, changed(running_as_wanted(target), "api", **found))
    assert result.steps == (expected,)
    assert result.verdict.state is DeploymentState.PROGRESSING


@pytest.mark.clause("AGT-6")
def test_converged_needs_the_settle_time():
    target = wanted(score(API))
    young = changed(running_as_wanted(target), "api", started_at=NOW - 9)
    result = look(target, young)
    assert result.verdict.state is DeploymentState.PROGRESSING
    assert result.verdict.message == "service api must stay up for 10 s, started 2026-11-30 00:53:11 UTC"
    assert result.verdict.again_in == pytest.approx(1)
    assert look(target, young, now=NOW + 1).verdict.state is DeploymentState.CONVERGED


@pytest.mark.clause("AGT-6")
@pytest.mark.case("P11")
def test_a_restart_inside_the_settle_time_is_a_failure_until_it_stays_up():
    target = wanted(score(API))
    crashed = changed(running_as_wanted(target), "api", started_at=NOW - 1, restarts=3, exit_code=4, log="out of luck")
    result = look(target, crashed)
    assert result.verdict.state is DeploymentState.FAILED
    assert result.verdict.message == "service api restarted 3 times, last exit code 4: out of luck"
    starting = changed(crashed, "api", restarts=0, exit_code=0)
    assert look(target, starting, result.memory).verdict.state is DeploymentState.FAILED, "not proven yet"
    assert look(target, crashed, result.memory, now=NOW + 20).verdict.state is DeploymentState.CONVERGED


@pytest.mark.clause("AGT-6")
@pytest.mark.case("P11")
def test_a_restart_between_two_looks_is_said_even_when_it_is_up_for_long_again():
    """A service that crashes once a minute would else look converged whenever somebody looks."""
    target = wanted(score(API))
    first = look(target, running_as_wanted(target))
    assert first.verdict.state is DeploymentState.CONVERGED
    crashed = changed(running_as_wanted(target), "api", restarts=1, exit_code=4, log="out of luck", started_at=NOW + 5)
    later = look(target, crashed, first.memory, now=NOW + 30)
    assert later.verdict.state is DeploymentState.FAILED
    assert later.verdict.message == "service api restarted once, last exit code 4: out of luck"
    assert later.verdict.again_in == 10
    assert look(target, crashed, later.memory, now=NOW + 39).verdict.state is DeploymentState.FAILED
    calm = look(target, crashed, later.memory, now=NOW + 40)
    assert calm.verdict.state is DeploymentState.CONVERGED
    assert look(target, crashed, calm.memory, now=NOW + 41).verdict.state is DeploymentState.CONVERGED
    assert look(target, crashed, now=NOW + 30).verdict.state is DeploymentState.CONVERGED, "of before the agent began"


@pytest.mark.clause("AGT-6")
@pytest.mark.case("P11")
@pytest.mark.parametrize(("code", "ran"), [(4, 100), (0, 1), (137, 1)])
def test_a_crash_is_a_failure_and_podman_s_own_restart_is_waited_for(code: int, ran: float):
    target = wanted(score(API))
    ended = changed(
        running_as_wanted(target),
        "api",
        state=State.EXITED,
        exit_code=code,
        started_at=NOW - 1 - ran,
        finished_at=NOW - 1,
    )
    result = look(target, ended)
    assert result.steps == ()
    assert result.verdict.message == f"service api exited with code {code}"
    assert look(target, ended, result.memory, now=NOW + 10).steps == (Start("id-0", "api"),), "Podman gave up"


@pytest.mark.clause("AGT-6")
def test_a_clock_that_was_set_back_withdraws_nothing():
    target = wanted(score(API))
    assert look(target, running_as_wanted(target), now=NOW - 86_400).verdict.state is DeploymentState.CONVERGED


@pytest.mark.clause("AGT-7")
def test_a_clock_that_was_set_back_keeps_nothing_down():
    """As after a reboot of a device without a battery for its clock."""
    target = wanted(score(API))
    crashed = changed(running_as_wanted(target), "api", state=State.EXITED, exit_code=4, finished_at=NOW - 1)
    assert look(target, crashed, now=NOW - 86_400).steps == (Start("id-0", "api"),)
    lost = changed(running_as_wanted(target), "api", state=State.LOST)
    later = look(target, lost, look(target, lost).memory, now=NOW - 86_400)
    assert later.steps == (Remove("id-0", "api"), Create(target.services[0]))


@pytest.mark.clause("AGT-6")
@pytest.mark.parametrize(
    ("health", "state"),
    [
        ("healthy", DeploymentState.CONVERGED),
        ("starting", DeploymentState.PROGRESSING),
        ("unhealthy", DeploymentState.FAILED),
    ],
)
def test_converged_needs_the_image_s_health_check(health: str, state: DeploymentState):
    target = wanted(score(API))
    assert look(target, changed(running_as_wanted(target), "api", health=health)).verdict.state is state


@pytest.mark.clause("AGT-6")
def test_a_service_that_may_end_counts_as_completed_and_stays_ended():
    target = wanted(score(JOB))
    ended = changed(running_as_wanted(target), "job", state=State.EXITED, finished_at=NOW - 5)
    for retry in (False, True):
        result = look(target, ended, retry=retry)
        assert result.steps == ()
        assert result.verdict.state is DeploymentState.CONVERGED


@pytest.mark.clause("AGT-6")
def test_a_service_that_failed_under_on_failure_is_started_again_at_the_next_pass():
    target = wanted(score(JOB))
    ended = changed(running_as_wanted(target), "job", state=State.EXITED, finished_at=NOW - 5, exit_code=2, log="bad")
    first = look(target, ended)
    assert first.steps == ()
    assert first.verdict.message == "service job exited with code 2: bad"
    assert look(target, ended, first.memory, retry=True).steps == (Start("id-0", "job"),)


@pytest.mark.case("P6")
@pytest.mark.parametrize(("state", "after"), [(State.STOPPING, STUCK_SECONDS), (State.LOST, 1.0)])
def test_a_container_stuck_in_a_passing_state_is_replaced_after_a_limit(state: State, after: float):
    target = wanted(score(API))
    stuck = changed(running_as_wanted(target), "api", state=state)
    first = look(target, stuck)
    assert first.steps == ()
    assert first.verdict.state is DeploymentState.PROGRESSING
    later = look(target, stuck, first.memory, now=NOW + after)
    assert later.steps == (Remove("id-0", "api"), Create(target.services[0]))


def test_a_pin_replaces_a_container_of_another_digest_and_no_container_of_that_digest():
    free = wanted(score(API))
    containers = running_as_wanted(free)
    same = resolve(_document(score(API), {API.image: "r.example/api@sha256:image-api"}), OWNER)
    assert look(same, containers).steps == (), "the canary that proved the digest restarts nothing"
    other = resolve(_document(score(API), {API.image: f"r.example/api@sha256:{'0' * 64}"}), OWNER)
    result = look(other, containers)
    assert result.steps == (Remove("id-0", "api"), Create(other.services[0]))
    assert other.services[0].spec.image == f"r.example/api@sha256:{'0' * 64}"


def _document(data: PodmanV0, images: dict[str, str]) -> DeploymentDocument:
    return DeploymentDocument(uid="u1", namespace="lab", name="app", revision=1, score=data, images=images)
