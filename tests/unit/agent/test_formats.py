"""What a release says of its formats is what its program does (UPG-8)."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from agent.formats import FORMATS
from agent.releases.description import DESCRIPTION, Release, formats_problem
from agent.store import Identity, KeptReports, Store
from tools.release import build

pytestmark = pytest.mark.clause("UPG-8")


def test_a_built_release_declares_the_formats_of_the_source(tmp_path: Path) -> None:
    (tmp_path / "fleet-agent").write_text("a program")
    build._describe(tmp_path, "2.0.0", 1_796_083_200)
    release = msgspec.json.decode((tmp_path / DESCRIPTION).read_bytes(), type=Release)
    assert release.version == "2.0.0"
    assert release.formats == FORMATS
    assert formats_problem(release.formats, FORMATS) == ""


def test_state_is_written_in_the_declared_format_and_read_in_no_newer_one(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save_identity(Identity("edge-1", "uid", "https://fleet.example.com"), "credential")
    store.save_reports(KeptReports(reserved=7))
    path = tmp_path / "reports.json"
    kept = json.loads(path.read_text())
    assert kept["format"] == FORMATS["state"].writes
    for version in FORMATS["state"].reads:
        path.write_text(_compact(kept | {"format": version}))
        assert store.reports().reserved == 7
    path.write_text(_compact(kept | {"format": max(FORMATS["state"].reads) + 1}))
    assert store.reports().reserved == 0
    assert "format" in store.early[0].message


def test_a_release_reads_what_it_writes() -> None:
    assert all(each.writes in each.reads for each in FORMATS.values())


def _compact(kept: dict[str, object]) -> str:
    """Byte for byte as it was written: the digest of the body is of these."""
    return json.dumps(kept, separators=(",", ":"))
