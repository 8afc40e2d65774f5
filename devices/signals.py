"""Bells for the apps above: sent after commit, and nobody relies on hearing them (a sweep finds the work anyway)."""

from __future__ import annotations

from django.dispatch import Signal

#: A device was deleted; arguments: ``name``, ``uid``.
device_forgotten = Signal()
#: Labels, groups or enrolments changed, so that something which matched nobody may match now.
device_changed = Signal()
