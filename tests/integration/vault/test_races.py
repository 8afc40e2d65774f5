"""Several people and a rotation at one secret at the same time: nobody gets an error that is no answer (E4, R6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

from fleet.core import clock
from fleet.core.errors import Conflict, NotFound
from tests.integration.rollouts.together import together
from tests.integration.rollouts.world import START
from vault.models import Secret
from vault.selectors import Reference, secret_named, values_of
from vault.services import secret_delete, secret_merge, secret_put, secrets_rotate

pytestmark = [pytest.mark.clause("AGT-10"), pytest.mark.database(transaction=True)]
KEYS = [f"k{number}" for number in range(8)]
ROUNDS = 8


@pytest.fixture(autouse=True)
def _still(transactional_db: None) -> Iterator[None]:
    with clock.reading(lambda: START):
        yield


def put(name: str, keys: list[str], value: str) -> None:
    secret_put(namespace="default", name=name, values=dict.fromkeys(keys, value), registry="", actor=None)


def again_and_again(step: Callable[[], object]) -> Callable[[], None]:
    """Being told that somebody was faster is an answer."""

    def run() -> None:
        for _ in range(ROUNDS):
            with suppress(Conflict, NotFound):
                step()

    return run


@pytest.mark.case("E4")
def test_two_who_make_the_same_secret_both_succeed_and_one_comes_last() -> None:
    for number in range(ROUNDS):
        name = f"s{number}"
        assert together(lambda n=name: put(n, ["a"], "1"), lambda n=name: put(n, ["b"], "2")) == []  # type: ignore[misc]
        assert len(secret_named("default", name).entries.all()) == 1
    assert Secret.objects.count() == ROUNDS


@pytest.mark.case("R6")
def test_puts_merges_deletes_and_a_rotation_wait_for_each_other_in_one_order(settings: Settings) -> None:
    old = settings.FLEET_SECRET_KEYS
    put("db", KEYS, "0")
    settings.FLEET_SECRET_KEYS = [Fernet.generate_key().decode(), *old]
    raised = together(
        again_and_again(lambda: put("db", KEYS, "1")),
        again_and_again(lambda: put("db", KEYS[::-1], "2")),
        again_and_again(
            lambda: secret_merge(
                namespace="default", name="db", values=dict.fromkeys(KEYS[3:], "3"), registry=None, actor=None
            )
        ),
        again_and_again(lambda: secret_delete(namespace="default", name="db", actor=None)),
        again_and_again(secrets_rotate),
    )
    assert raised == []
    put("db", KEYS, "4")
    assert set(values_of("default", {Reference("db", key) for key in KEYS}).values()) == {"4"}
