"""Formats that outlive the agent's executable, each with the versions that this one reads and the one that it writes.

They go into each release's ``release.json``; the updater compares them before an agent follows another (UPG-8). A
format is read one release before it is written, so that there is always a way back.
"""

from __future__ import annotations

from agent import store
from agent.releases.description import Format

FORMATS = {
    "agent.toml": Format(reads=(1,), writes=1),
    "state": Format(reads=tuple(range(1, store.FORMAT + 1)), writes=store.FORMAT),
    "secrets.cache": Format(reads=(1,), writes=1),
    "container labels": Format(reads=(1,), writes=1),
}
