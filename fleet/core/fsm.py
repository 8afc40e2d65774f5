"""How a row with a state is changed: one at a time, freshly read under a lock, written once (ADR 1)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, TypeVar

from django.db import models, transaction

Row = TypeVar("Row", bound=models.Model)


@contextmanager
def locked(model: type[Row], pk: Any) -> Iterator[Row]:
    """A fresh row under a lock, saved at the end of the block if a field changed.

    On SQLite the lock is the transaction itself (IMMEDIATE); on PostgreSQL it is the row's. In both, models with
    ``ConcurrentTransitionMixin`` save with a filter on the state that was read.

    Raises:
        DoesNotExist: of the model, when there is no such row any more.
        django_fsm.ConcurrentTransition: when the state was changed by somebody who took no lock.
    """
    with transaction.atomic():
        row = model._default_manager.select_for_update().get(pk=pk)
        before = _values(row)
        yield row
        if _values(row) != before:
            row.save()


def _values(row: models.Model) -> dict[str, Any]:
    """What would be saved; JSON copied whole, because it may be changed in place."""
    values = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    return {name: deepcopy(value) if isinstance(value, list | dict) else value for name, value in values.items()}
