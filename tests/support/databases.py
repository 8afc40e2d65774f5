"""Which database and broker folder a test run uses, decided before Django's settings load (``-p`` in pyproject.toml).

PostgreSQL by default, started only when a test asks for a database; SQLite with ``FLEET_TEST_DATABASE=sqlite``.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.postgres import PostgresServer
from tests.support import ending
from tests.support.needs import need

CHOICE = "FLEET_TEST_DATABASE"
CHOICES = ("postgres", "sqlite")


class TestDatabase:
    """The database of one run: its address is known at once, its server starts at first use."""

    __test__ = False

    def __init__(self, choice: str) -> None:
        if choice not in CHOICES:
            raise pytest.UsageError(f"{CHOICE}={choice}: allowed are {' and '.join(CHOICES)}")
        self.folder = Path(tempfile.mkdtemp(prefix="fleet-test-"))
        self.server = PostgresServer() if choice == "postgres" else None

    def announce(self) -> None:
        """Tell the settings, which read environment variables only."""
        os.environ["FLEET_DATA_DIR"] = str(self.folder)
        for name in ("FLEET_DATABASE_URL", "FLEET_REDIS_URL", "FLEET_GROUP_SOURCE"):
            os.environ.pop(name, None)
        if self.server:
            os.environ["FLEET_DATABASE_URL"] = self.server.url()

    def start(self) -> None:
        if self.server:
            need("initdb")
            self.server.start()

    def environment(self) -> dict[str, str]:
        """For processes that shall use the same database as the test."""
        from django.conf import settings  # noqa: PLC0415  (this module comes before the settings)

        database = {"FLEET_DATA_DIR": str(self.folder)}
        if self.server:
            database["FLEET_DATABASE_URL"] = self.server.url(settings.DATABASES["default"]["NAME"])
        return database

    def remove(self) -> None:
        if self.server:
            self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


_key = pytest.StashKey[TestDatabase]()


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """A wrapper, because pytest-django's hook of this name loads the settings and wants to be first too."""
    database = TestDatabase(os.environ.get(CHOICE, "postgres"))
    database.announce()
    early_config.stash[_key] = database
    ending.heed()
    try:
        return (yield)
    except BaseException:
        database.remove()
        raise


def pytest_unconfigure(config: pytest.Config) -> None:
    if database := config.stash.get(_key, None):
        database.remove()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """``@pytest.mark.database`` asks for the database too, so that nobody writes two marks for one thing."""
    for item in items:
        mark = item.get_closest_marker("database")
        if mark and not item.get_closest_marker("django_db"):
            item.add_marker(pytest.mark.django_db(*mark.args, **mark.kwargs))


@pytest.fixture(scope="session")
def test_database(pytestconfig: pytest.Config) -> TestDatabase:
    """The run's database, serving."""
    database = pytestconfig.stash[_key]
    database.start()
    return database


@pytest.fixture(scope="session")
def django_db_modify_db_settings(test_database: TestDatabase) -> None:
    """pytest-django asks for this before it makes its test database."""
