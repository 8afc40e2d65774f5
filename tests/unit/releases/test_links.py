"""Where a link in an archive may lead (UPG-3)."""

from pathlib import Path

import pytest

from tests.unit.releases.kit import TOP, archive, link, members
from tests.unit.releases.test_archive import Desk


@pytest.mark.clause("UPG-3")
def test_a_link_s_target_has_no_byte_that_no_path_has(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    info, data = link(f"{TOP}/x", "a")
    info.pax_headers = {"linkpath": "a\0b"}
    said = desk.install(archive([*members(), (info, data)]))
    assert "links to" in said
