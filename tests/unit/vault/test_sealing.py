"""Values are encrypted, open with any key that is still named, and only in their own place (AGT-10)."""

from __future__ import annotations

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

from fleet.core.errors import Conflict
from vault.checks import keys_are_set
from vault.sealing import Sealer, Unreadable, place_of

pytestmark = pytest.mark.clause("AGT-10")
PLACE = place_of("default", "db", "password")
HOSTILE = ["", "hunter2", "ä 🔑\n\t'\"$(x)\\", "\x01\x7f\u2028", "x" * 130_000]


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_a_value_comes_back_as_it_was(value: str) -> None:
    sealed = Sealer().seal(PLACE, value)
    assert not value or value not in sealed
    assert Sealer().open(PLACE, sealed) == value


def test_the_same_value_is_sealed_differently_each_time() -> None:
    assert Sealer().seal(PLACE, "hunter2") != Sealer().seal(PLACE, "hunter2")


@pytest.mark.parametrize(
    "place", [("default", "db", "admin"), ("shop", "db", "password"), ("default", "d", "password")]
)
def test_a_sealed_value_that_was_copied_elsewhere_does_not_open(place: tuple[str, str, str]) -> None:
    """Whoever may write to the database still can't let another deployment read it."""
    sealed = Sealer().seal(PLACE, "hunter2")
    with pytest.raises(Unreadable):
        Sealer().open(place_of(*place), sealed)


def test_any_key_opens_and_the_newest_seals(settings: Settings) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.FLEET_SECRET_KEYS = [old]
    before, fingerprint = Sealer().seal(PLACE, "hunter2"), Sealer().newest
    settings.FLEET_SECRET_KEYS = [new, old]
    assert Sealer().open(PLACE, before) == "hunter2"
    after = Sealer().seal(PLACE, "hunter2")
    assert Sealer().newest != fingerprint
    settings.FLEET_SECRET_KEYS = [new]
    assert Sealer().open(PLACE, after) == "hunter2"
    with pytest.raises(Unreadable):
        Sealer().open(PLACE, before)


FOREIGN = ["", "x", "gAAAAA", "ä", Fernet(Fernet.generate_key()).encrypt(b"x").decode()]


@pytest.mark.parametrize("sealed", FOREIGN, ids=range(len(FOREIGN)))
def test_what_nobody_sealed_does_not_open(sealed: str) -> None:
    with pytest.raises(Unreadable) as caught:
        Sealer().open(PLACE, sealed)
    assert str(caught.value) == ""
    assert caught.value.__cause__ is None


def test_without_keys_nothing_is_sealed_or_opened_and_the_deployment_check_says_so(settings: Settings) -> None:
    sealed = Sealer().seal(PLACE, "hunter2")
    assert keys_are_set() == []
    settings.FLEET_SECRET_KEYS = []
    with pytest.raises(Conflict, match="sets FLEET_SECRET_KEYS and restarts"):
        Sealer().seal(PLACE, "hunter2")
    with pytest.raises(Unreadable):
        Sealer().open(PLACE, sealed)
    (warning,) = keys_are_set()
    assert "FLEET_SECRET_KEYS is not set" in warning.msg
