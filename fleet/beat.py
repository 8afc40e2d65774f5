"""Celery beat with two schedules: the product's own periodic jobs, and those that people keep in the database.

The product's own jobs run twice a second, are the same in every installation and must not be switched off by hand. In
django-celery-beat's tables they could be, and each run would be noted there; so they live in memory.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from importlib import import_module
from typing import Any

from celery.beat import ScheduleEntry
from django.apps import apps
from django.db import Error
from django.utils.module_loading import module_has_submodule
from django_celery_beat.schedulers import DatabaseScheduler

#: Far more than a worker that is merely busy ever leaves; a beat without any worker comes here in minutes.
MOST_WAITING = 1000
log = logging.getLogger(__name__)


def own_schedule() -> dict[str, dict[str, Any]]:
    """All entries that apps declare as ``jobs.SCHEDULE``, by name."""
    entries: dict[str, dict[str, Any]] = {}
    for config in apps.get_app_configs():
        if module_has_submodule(config.module, "jobs"):
            entries |= getattr(import_module(f"{config.name}.jobs"), "SCHEDULE", {})
    return entries


class Scheduler(DatabaseScheduler):
    """The database's schedule with ours beside it."""

    _own: dict[str, ScheduleEntry] | None = None

    def setup_schedule(self) -> None:
        """Read both schedules; unlike the parent, write none of ours into the database."""
        with suppress(Error):
            # The parent overlooks the first change ever, because it has nothing to compare it with.
            self.Changes.update_changed()
        self._own = {name: ScheduleEntry(name=name, app=self.app, **entry) for name, entry in own_schedule().items()}
        self._merge()

    @property
    def schedule(self) -> dict[str, Any]:
        return self._merge()

    def reserve(self, entry: Any) -> Any:
        """The entry's next run. Ours are kept here and never marked for the database."""
        if self._own is None or entry.name not in self._own:
            return super().reserve(entry)
        self._own[entry.name] = next(entry)
        return self._own[entry.name]

    def apply_async(self, entry: Any, producer: Any = None, advance: bool = True, **options: Any) -> Any:
        """Ring, unless one of ours would only wait behind many bells that nobody hears: they would fill the broker."""
        if self._own and entry.name in self._own and self._waiting(producer) >= MOST_WAITING:
            return None
        return super().apply_async(entry, producer=producer, advance=advance, **options)

    def _waiting(self, producer: Any) -> int:
        """How many messages no worker has taken yet."""
        return int(producer.channel.queue_declare(queue=self.app.conf.task_default_queue).message_count)

    def _merge(self) -> dict[str, Any]:
        return {**self._from_database(), **(self._own or {})}

    def _from_database(self) -> dict[str, Any]:
        """People's entries as last read: a database that is away for a while must not end the beat."""
        try:
            return super().schedule or {}
        except Error as error:
            log.warning("could not read the schedule from the database, which is tried again: %s", error)
            return self._schedule or {}
