"""Who is in a group (DEP-7): asked of a source that the settings name. Production names none.

A room of its own, because it is the place where others plug in their directory: see docs/how-to/groups.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from devices.models import DeviceGroup


class GroupSourceError(Exception):
    """The source can't answer now; nothing is frozen and nothing removed because of it."""


class GroupSource(Protocol):
    """Answers which devices are in which groups."""

    def members(self, groups: Collection[str]) -> Mapping[str, Collection[str]]:
        """Device names by group, with an entry for each group asked for.

        Raises:
            GroupSourceError: when it can't say.
        """
        ...


class DatabaseGroupSource:
    """The groups that are kept in the admin. A group that nobody made has no members."""

    def members(self, groups: Collection[str]) -> Mapping[str, Collection[str]]:
        """Device names by group; one query."""
        found: dict[str, set[str]] = defaultdict(set)
        pairs = DeviceGroup.objects.filter(name__in=groups, devices__isnull=False)
        for group, device in pairs.values_list("name", "devices__name"):
            found[group].add(device)
        return {group: frozenset(found[group]) for group in groups}


def configured() -> GroupSource | None:
    """The source that the settings name; None fails closed.

    Raises:
        GroupSourceError: when the name leads nowhere.
    """
    path = settings.FLEET_GROUP_SOURCE
    if not path:
        return None
    try:
        source: GroupSource = import_string(path)()
    except Exception as error:
        raise GroupSourceError(f"FLEET_GROUP_SOURCE {path} can't be loaded: {error}") from error
    return source


def ask(source: GroupSource, groups: Collection[str]) -> Mapping[str, frozenset[str]]:
    """The members of all these groups.

    Raises:
        GroupSourceError: when the source fails in any way, or leaves a group out: half an answer is none.
    """
    try:
        answer = source.members(groups)
        members = {group: answer[group] for group in groups if group in answer}
        found = {group: frozenset(names) for group, names in members.items() if not isinstance(names, str)}
    except GroupSourceError:
        raise
    except Exception as error:  # somebody else's code; whatever it raises or answers, we must not guess
        raise GroupSourceError(f"{type(source).__name__} failed: {type(error).__name__}: {error}") from error
    if missing := sorted(set(groups) - set(found)):
        raise GroupSourceError(f"{type(source).__name__} did not answer for {', '.join(missing)}")
    return found
