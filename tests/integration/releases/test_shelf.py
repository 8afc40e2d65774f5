"""Releases are put on the shelf with what they say of themselves; devices go on where they were cut off."""

from __future__ import annotations

import gzip
import hashlib
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart
from pytest_django import DjangoAssertNumQueries, Settings

from agent.wire.manifest import AgentUpgrade
from fleet.core.errors import Conflict, FleetError
from fleet.core.models import AuditEntry
from releases import reading, services
from releases.models import ShelvedRelease
from tests.integration.api.rest import Rest, problem
from tests.integration.devices.door import Door
from tests.integration.releases.archives import archive, long_headed, packed
from upgrades.services import agent_upgrade_set

pytestmark = [pytest.mark.clause("UPG-1", "UPG-3"), pytest.mark.database]
GOOD = archive()
DIGEST = hashlib.sha256(GOOD).hexdigest()
ELSEWHERE = {"version": "1.2.3", "architecture": "arm64", "sha256": "ab" * 32, "size": 25_000_000}


@pytest.fixture
def rest(as_role: Callable[[str], Rest]) -> Rest:
    return as_role("operator")


def upload(rest: Rest, body: bytes, **fields: str) -> HttpResponse:
    file = SimpleUploadedFile("release.tar.gz", body)
    data = encode_multipart(BOUNDARY, {"file": file, **fields})
    return rest.call("POST", "releases/upload/", data, content_type=MULTIPART_CONTENT)


def kept(settings: Settings) -> list[str]:
    return sorted(path.name for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file())


def test_what_is_uploaded_is_read_from_the_archive(rest: Rest, settings: Settings) -> None:
    made = upload(rest, GOOD, notes="for the lab").json()
    assert {name: made[name] for name in ("version", "architecture", "sha256", "size", "url", "notes", "addedBy")} == {
        "version": "1.2.3",
        "architecture": "amd64",
        "sha256": DIGEST,
        "size": len(GOOD),
        "url": "",
        "notes": "for the lab",
        "addedBy": "operator",
    }
    assert made["agentUpgrade"] == {
        "version": "1.2.3",
        "architecture": "amd64",
        "url": f"http://testserver/api/agent/v1/releases/{DIGEST}",
        "maxSize": len(GOOD),
        "sha256": DIGEST,
    }
    assert rest.get(f"releases/{DIGEST}/") == made
    assert rest.get("releases/", version="1.2.3")["results"] == [made]
    assert kept(settings) == [f"{DIGEST}.tar.gz"]
    assert AuditEntry.objects.get(object_kind="Release").action == "add"
    assert "already" in problem(upload(rest, GOOD), 409)["detail"]
    assert kept(settings) == [f"{DIGEST}.tar.gz"]


BAD = {
    "no archive": (b"hello", "no .tar.gz"),
    "cut off": (GOOD[: len(GOOD) // 2], "no .tar.gz"),
    "another archive": (packed({"some/file": b"x"}), "has no release.json"),
    "too deep": (packed({"a/b/release.json": b"{}"}), "has no release.json"),
    "no version": (archive(release_json=b"{}"), "the version ''"),
    "a path as version": (archive(release_json=b'{"version": "../1", "architecture": "amd64"}'), "'../1'"),
    "another architecture": (archive(architecture="sparc"), "'sparc'"),
    "no JSON": (archive(release_json=b"[" * 100_000), "no description of a release"),
    "an endless name": (long_headed(tarfile.GNUTYPE_LONGNAME, 1_000_000), "a header of 1,000,000 bytes"),
    "endless attributes": (long_headed(tarfile.XHDTYPE, 1_000_000), "a header of 1,000,000 bytes"),
    "too many entries": (packed({f"a/{n}": b"" for n in range(reading.MAX_ENTRIES + 1)}), "entries"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_release_is_refused_and_nothing_is_kept(name: str, rest: Rest, settings: Settings) -> None:
    body, words = BAD[name]
    assert words in problem(upload(rest, body), 422)["detail"]
    assert kept(settings) == []
    assert not ShelvedRelease.objects.exists()


def test_what_is_too_large_is_refused(rest: Rest, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    monkeypatch.setattr(reading, "MAX_ARCHIVE_BYTES", 100)
    assert "more than 100 bytes" in problem(upload(rest, GOOD), 413)["detail"]
    assert kept(settings) == []


def test_a_bomb_is_noticed_before_it_is_unpacked(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_UNPACKED_BYTES", 1_000_000)
    bomb = gzip.compress(gzip.decompress(packed({"a/zeros": b"\0" * 4_000_000, "a/release.json": b"{}"})))
    assert "unpacked" in problem(upload(rest, bomb), 422)["detail"]


def test_a_release_elsewhere_is_noted_by_its_address(rest: Rest) -> None:
    url = "oci://registry.example.com/fleet/agent:1.2.3"
    made = rest.call("POST", "releases/", {**ELSEWHERE, "url": url})
    assert made.status_code == 201, made.content
    assert rest.get(f"releases/{'ab' * 32}/")["agentUpgrade"]["url"] == url
    for bad in ("http://example.com/a", "file:///etc/passwd", "https://u:p@example.com/a"):
        said = problem(rest.call("POST", "releases/", {**ELSEWHERE, "sha256": "cd" * 32, "url": bad}), 422)
        assert said["errors"][0]["path"] == "url"
    assert ShelvedRelease.objects.count() == 1


def test_who_may_not_adds_and_removes_nothing(as_role: Callable[[str], Rest]) -> None:
    viewer = as_role("viewer")
    problem(upload(viewer, GOOD), 403)
    made = services.release_upload(archive=SimpleUploadedFile("a", GOOD), actor=None)
    problem(viewer.call("DELETE", f"releases/{made.sha256}/"), 403)
    assert viewer.get("releases/")["results"]


def test_a_release_that_a_device_may_still_fetch_stays(door: Door, rest: Rest, settings: Settings) -> None:
    door.enrolled("edge-1")
    upload(rest, GOOD)
    wanted = AgentUpgrade("1.2.3", "amd64", "https://fleet.example.com/a", len(GOOD), DIGEST)
    agent_upgrade_set(device=door.device("edge-1"), target=wanted, actor=None)
    assert rest.get(f"releases/{DIGEST}/")["wanting"] == 1
    assert "edge-1" in problem(rest.call("DELETE", f"releases/{DIGEST}/"), 409)["detail"]
    agent_upgrade_set(device=door.device("edge-1"), target=None, actor=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("django.db.transaction.on_commit", lambda run: run())
        services.release_remove(release=ShelvedRelease.objects.get(), actor=None)
    assert kept(settings) == []
    problem(rest.call("DELETE", f"releases/{DIGEST}/"), 404)


def test_an_archive_whose_row_cannot_be_written_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise Conflict("broken")

    monkeypatch.setattr("releases.services.shelving._add", broken)
    with pytest.raises(FleetError):
        services.release_upload(archive=SimpleUploadedFile("a", GOOD), actor=None)
    assert kept(settings) == []


# What devices fetch --------------------------------------------------------------------------------------------------


@pytest.fixture
def shelved(db: None) -> ShelvedRelease:
    return services.release_upload(archive=SimpleUploadedFile("a", GOOD), actor=None)


def fetch(door: Door, credential: str, digest: str = DIGEST, **headers: str) -> HttpResponse:
    return door.get(
        f"/releases/{digest}", credential, **{name.replace("_", "-"): value for name, value in headers.items()}
    )


def body(answer: HttpResponse) -> bytes:
    return b"".join(answer.streaming_content)  # type: ignore[attr-defined]


def test_a_device_fetches_it_whole_or_in_parts(
    door: Door, shelved: ShelvedRelease, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    credential = door.enrolled("edge-1")
    with django_assert_num_queries(2):
        whole = fetch(door, credential)
        assert body(whole) == GOOD
    assert (whole.status_code, whole["Content-Length"], whole["ETag"]) == (200, str(len(GOOD)), f'"{DIGEST}"')
    part = fetch(door, credential, Range="bytes=10-", If_Range=whole["ETag"])
    assert (part.status_code, body(part)) == (206, GOOD[10:])
    assert part["Content-Range"] == f"bytes 10-{len(GOOD) - 1}/{len(GOOD)}"
    assert body(fetch(door, credential, Range="bytes=3-5")) == GOOD[3:6]
    assert body(fetch(door, credential, Range="bytes=10-", If_Range='"another"')) == GOOD
    assert body(fetch(door, credential, Range="bytes=0-1,4-5")) == GOOD
    beyond = fetch(door, credential, Range=f"bytes={len(GOOD)}-")
    assert (beyond.status_code, beyond["Content-Range"]) == (416, f"bytes */{len(GOOD)}")


def test_an_archive_that_was_lost_is_said_to_be(door: Door, shelved: ShelvedRelease) -> None:
    shelved.file.storage.delete(str(shelved.file.name))
    assert "has to be added again" in problem(fetch(door, door.enrolled("edge-1")), 404)["detail"]


def test_without_a_place_for_it_nothing_is_taken(rest: Rest, settings: Settings) -> None:
    settings.MEDIA_ROOT = ""
    assert "FLEET_FILES_DIR" in problem(upload(rest, GOOD), 409)["detail"]


def test_nobody_else_fetches_anything(door: Door, shelved: ShelvedRelease) -> None:
    problem(fetch(door, ""), 401)
    problem(fetch(door, "guessed"), 401)
    credential = door.enrolled("edge-1")
    problem(fetch(door, credential, "0" * 64), 404)
