"""Releases are put on the shelf, and taken off it when no device needs them any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, Any, cast

from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.db import IntegrityError, transaction

from agent.wire.artifacts import url_problem
from agent.wire.rules import Fault
from fleet.core import audit, clock
from fleet.core.errors import Conflict, Invalid
from releases import reading, uses
from releases.models import ShelvedRelease

KIND = "Release"
NO_PLACE = (
    "this control plane has no folder for archives; set FLEET_FILES_DIR to one that all its web servers share, "
    "or note a release by its address"
)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A release that lies at an address of somebody else; ``size`` in bytes."""

    version: str
    architecture: str
    sha256: str
    size: int
    url: str


def release_upload(*, archive: UploadedFile[Any], actor: User | None, notes: str = "") -> ShelvedRelease:
    """Keep an archive. Digest, size, version and architecture are read from it; nobody has to type them.

    Raises:
        Invalid: it is no archive of a release.
        TooLarge: it is larger than any release.
        Conflict: the same archive is there already, or there is no place for any.
    """
    if not settings.MEDIA_ROOT:
        raise Conflict(NO_PLACE)
    stream = cast("IO[bytes]", archive.file)
    found = reading.read(stream)
    fresh = ShelvedRelease(
        version=found.version, architecture=found.architecture, sha256=found.sha256, size=found.size, notes=notes
    )
    _refuse_twice(found.sha256)
    stream.seek(0)
    fresh.file.save(f"{found.sha256}.tar.gz", archive, save=False)
    try:
        return _add(fresh, actor)
    except BaseException:
        fresh.file.delete(save=False)  # a file without its row would never be found again
        raise


def release_note(*, elsewhere: Elsewhere, actor: User | None, notes: str = "") -> ShelvedRelease:
    """Note a release that lies elsewhere; devices fetch it from there.

    Raises:
        Invalid: its address is none that devices fetch from (UPG-1).
        Conflict: the same archive is there already.
    """
    if problem := url_problem(elsewhere.url):
        raise Invalid(f"url: {problem}", [Fault("url", problem)])
    _refuse_twice(elsewhere.sha256)
    fresh = ShelvedRelease(
        version=elsewhere.version,
        architecture=elsewhere.architecture,
        sha256=elsewhere.sha256,
        size=elsewhere.size,
        url=elsewhere.url,
        notes=notes,
    )
    return _add(fresh, actor)


def release_remove(*, release: ShelvedRelease, actor: User | None) -> None:
    """Take it off the shelf. Devices that run it go on.

    Raises:
        Conflict: a device may still have to fetch it, or a rollout still holds some back.
    """
    if names := uses.of(release):
        who = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
        raise Conflict(f"release {release} is still needed by {who}; change what they want, or end it, first")
    file = release.file
    with transaction.atomic():
        ShelvedRelease.objects.filter(pk=release.pk).delete()
        audit.record(actor=actor, action="remove", kind=KIND, name=str(release), detail={"sha256": release.sha256})
        if file:
            transaction.on_commit(lambda: file.storage.delete(str(file.name)))


def _refuse_twice(sha256: str) -> None:
    known = ShelvedRelease.objects.filter(sha256=sha256).first()
    if known is not None:
        raise Conflict(f"this archive is on the shelf already: release {known}")


def _add(fresh: ShelvedRelease, actor: User | None) -> ShelvedRelease:
    fresh.added_at, fresh.added_by = clock.now(), audit.actor_name(actor)
    try:
        with transaction.atomic():
            fresh.save(force_insert=True)
            audit.record(actor=actor, action="add", kind=KIND, name=str(fresh), detail={"sha256": fresh.sha256})
    except IntegrityError:
        raise Conflict("this archive was put on the shelf by somebody else just now") from None
    return fresh
