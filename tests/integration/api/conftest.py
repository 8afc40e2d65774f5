from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import Group, User
from django.core.cache import cache

from fleet.core import clock
from tests.integration.api.rest import Rest
from tests.integration.rollouts.world import World


@pytest.fixture
def world(db: None) -> Iterator[World]:
    """A fleet whose clock stands still."""
    made = World()
    with clock.reading(lambda: made.now):
        yield made


@pytest.fixture
def as_role(db: None) -> Callable[[str], Rest]:
    """A program with the token of somebody who has this role and is called like it; "" for no role."""

    def log_in(role: str) -> Rest:
        user = User.objects.create_user(role or "nobody", password="correct horse")
        if role:
            user.groups.add(Group.objects.get(name=role))
        return Rest.of(user)

    return log_in


@pytest.fixture
def viewer(as_role: Callable[[str], Rest]) -> Rest:
    return as_role("viewer")


@pytest.fixture
def operator(as_role: Callable[[str], Rest], world: World) -> Rest:
    """May deploy to the group ``lab``."""
    rest = as_role("operator")
    world.group("lab").deployers.add(Group.objects.get(name="operator"))
    return rest


@pytest.fixture
def administrator(as_role: Callable[[str], Rest]) -> Rest:
    return as_role("administrator")


@pytest.fixture(autouse=True)
def _forgotten_attempts() -> Iterator[None]:
    """The throttle counts in the cache, which outlives a test."""
    cache.clear()
    yield
    cache.clear()
