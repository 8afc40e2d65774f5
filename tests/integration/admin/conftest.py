from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from fleet.core import clock
from tests.integration.rollouts.world import World


@pytest.fixture
def world(db: None) -> Iterator[World]:
    """A fleet whose clock stands still."""
    made = World()
    with clock.reading(lambda: made.now):
        yield made


@pytest.fixture
def signed_in(db: None) -> Callable[[str], Client]:
    """A browser in which somebody with this role is signed in; the user is called like the role."""

    def sign_in(role: str) -> Client:
        user = User.objects.create_user(role, password="correct horse", is_staff=True)
        user.groups.add(Group.objects.get(name=role))
        client = Client()
        client.force_login(user)
        return client

    return sign_in


@pytest.fixture
def viewer(signed_in: Callable[[str], Client]) -> Client:
    return signed_in("viewer")


@pytest.fixture
def operator(signed_in: Callable[[str], Client], world: World) -> Client:
    """May deploy to the group ``lab``."""
    client = signed_in("operator")
    world.group("lab").deployers.add(Group.objects.get(name="operator"))
    return client


@pytest.fixture
def administrator(signed_in: Callable[[str], Client]) -> Client:
    return signed_in("administrator")
