"""Ours, without middleware and with the empty view only."""

from fleet.settings.local import *  # noqa: F403

MIDDLEWARE = []
ROOT_URLCONF = "bench.floor"
