"""What people may do with a run: apply once, end, delete, repeat for the failed (TSK-7, TSK-8)."""

from __future__ import annotations

import pytest
import yaml
from django.contrib.auth.models import User

from agent.wire.messages import AttemptState
from fleet.core import door
from fleet.core.errors import Conflict, Denied
from fleet.core.kinds import manifests_apply
from rollouts.models import Deployment
from tasks import services
from tasks.models import Phase, TaskRun
from tests.integration.tasks.tasks import Tasks

pytestmark = pytest.mark.database
ACCEPTED, COMPLETED = AttemptState.ACCEPTED, AttemptState.COMPLETED


@pytest.mark.clause("TSK-7")
def test_the_same_spec_is_unchanged_and_another_a_conflict(tasks: Tasks) -> None:
    assert tasks.apply_run().outcome == "created"
    assert tasks.apply_run().outcome == "unchanged"
    with pytest.raises(Conflict, match="default/upgrade exists with another spec"):
        tasks.apply_run(tasks.taskrun(deadline=60))
    assert TaskRun.objects.count() == 1


@pytest.mark.clause("TSK-7")
def test_deleting_stops_release_and_what_was_accepted_finishes_in_the_history(tasks: Tasks) -> None:
    begun, offered = tasks.updaters(["edge-1", "edge-2"], canary=True)
    (rest,) = tasks.updaters(["edge-3"])
    run = tasks.run()
    tasks.says_attempt(begun, ACCEPTED)
    services.taskrun_delete(run=run, actor=None)
    services.sweep()
    assert tasks.shown(run) == {"edge-1": "Running", "edge-2": "Failed", "edge-3": "NotStarted"}
    assert (len(tasks.offered(begun)), tasks.offered(offered), tasks.offered(rest)) == (1, [], [])
    tasks.says_attempt(begun, COMPLETED)
    assert tasks.shown(run)["edge-1"] == "Completed"
    assert tasks.fresh(run).phase == Phase.CANCELLED
    assert tasks.apply_run(tasks.taskrun(deadline=60)).outcome == "created"  # its name is free


@pytest.mark.clause("TSK-7")
@pytest.mark.case("R7")
def test_ending_twice_changes_nothing_more(tasks: Tasks) -> None:
    tasks.updaters(["edge-1"])
    run = tasks.run()
    services.taskrun_end(run=run, actor=None)
    services.taskrun_end(run=run, actor=None)
    assert [each.event for each in run.history.all()] == ["Running", "Released", "Cancelled"]


@pytest.mark.clause("TSK-8")
def test_a_run_is_repeated_for_its_failed_devices(tasks: Tasks) -> None:
    good, bad = tasks.updaters(["edge-1", "edge-2"])
    run = tasks.run()
    tasks.says_attempt(good, COMPLETED)
    with pytest.raises(Conflict, match="no device that still exists failed"):
        services.taskrun_recreate(run=run, actor=None)
    tasks.says_attempt(bad, AttemptState.FAILED, message="no space")
    again = tasks.look(services.taskrun_recreate(run=run, actor=None))
    assert (again.name, tasks.shown(again)) == ("upgrade-2", {"edge-2": "Released"})


@pytest.mark.clause("TSK-1")
def test_a_text_with_both_kinds_is_applied_as_a_whole_or_not_at_all(tasks: Tasks) -> None:
    def text(deadline: int) -> str:
        return yaml.safe_dump_all([tasks.taskrun(deadline=deadline), tasks.manifest()])

    done = manifests_apply(manifests=door.admit(text(60)), actor=None)
    assert [each.outcome for each in done] == ["created", "created"]
    Deployment.objects.all().delete()
    with pytest.raises(Conflict):
        manifests_apply(manifests=door.admit(text(120)), actor=None)
    assert Deployment.objects.count() == 0


@pytest.mark.clause("TSK-1", "ADM-2")
def test_each_kind_needs_its_own_permission(tasks: Tasks) -> None:
    with pytest.raises(Denied, match=r"tasks\.add_taskrun"):
        manifests_apply(manifests=door.admit(yaml.safe_dump(tasks.taskrun())), actor=User.objects.create_user("bob"))
