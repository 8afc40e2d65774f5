"""Who is in a group, and what happens when nobody can say (DEP-7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest
from pytest_django import Settings

from devices.group_sources import DatabaseGroupSource, GroupSourceError, ask, configured
from devices.models import DeviceGroup
from devices.services import group_create, group_set_devices
from fleet.core.errors import Conflict, Invalid, NotFound
from tests.integration.devices.door import Door

pytestmark = pytest.mark.database


@pytest.mark.clause("DEP-7")
def test_the_database_source_answers_for_every_group_it_is_asked_for(door: Door) -> None:
    door.enrolled("edge-1")
    door.enrolled("edge-2")
    group_set_devices(group=group_create(name="lab", actor=None), devices=["edge-1", "edge-2"], actor=None)
    assert ask(DatabaseGroupSource(), ["lab", "nobody-made-this"]) == {
        "lab": {"edge-1", "edge-2"},
        "nobody-made-this": frozenset(),
    }


@pytest.mark.clause("DEP-7")
def test_without_a_configured_source_there_is_none(settings: Settings) -> None:
    settings.FLEET_GROUP_SOURCE = None
    assert configured() is None
    settings.FLEET_GROUP_SOURCE = "devices.group_sources.Nonsense"
    with pytest.raises(GroupSourceError, match="Nonsense can't be loaded"):
        configured()


class Partly:
    def members(self, groups: Collection[str]) -> Mapping[str, Collection[str]]:
        return {"lab": ["edge-1"]}


class Broken:
    def members(self, groups: Collection[str]) -> Mapping[str, Collection[str]]:
        raise TimeoutError("the directory did not answer")


class Answering:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def members(self, groups: Collection[str]) -> Any:
        return self.answer


@pytest.mark.clause("DEP-7")
@pytest.mark.parametrize("answer", [None, "lab", [], {"lab": None}, {"lab": "edge-1"}, {"lab": 1}, {}])
def test_an_answer_of_another_form_is_no_answer(answer: Any) -> None:
    with pytest.raises(GroupSourceError, match="Answering"):
        ask(Answering(answer), ["lab"])


@pytest.mark.clause("DEP-7")
def test_half_an_answer_and_an_error_are_no_answer() -> None:
    with pytest.raises(GroupSourceError, match="Partly did not answer for production"):
        ask(Partly(), ["lab", "production"])
    with pytest.raises(GroupSourceError, match="Broken failed: TimeoutError: the directory did not answer"):
        ask(Broken(), ["lab"])


def test_bad_groups_are_refused_and_leave_things_as_they_were(door: Door) -> None:
    group = group_create(name="lab", actor=None)
    with pytest.raises(Conflict, match="'lab' already"):
        group_create(name="lab", actor=None)
    with pytest.raises(Invalid, match="'no spaces'"):
        group_create(name="no spaces", actor=None)
    with pytest.raises(NotFound, match="no device edge-9"):
        group_set_devices(group=group, devices=["edge-9"], actor=None)
    assert list(DeviceGroup.objects.values_list("name", flat=True)) == ["lab"]
