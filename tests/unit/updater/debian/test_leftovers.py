"""What an attempt leaves that was cut off before it was tidied up (UPG-3)."""

from pathlib import Path

import pytest

from tests.unit.updater.debian.test_disk import TARGET, Device

OTHER = "5f0c1f1e-0000-4000-8000-000000000002"


@pytest.mark.clause("UPG-3")
def test_what_an_attempt_left_that_was_cut_off_before_it_was_tidied_goes_with_the_next(tmp_path: Path) -> None:
    device = Device(tmp_path)
    device.download()
    device.disk.verify("5f0c1f1e-0000-4000-8000-000000000001", TARGET, 60.0)
    device.download(attempt=OTHER)
    device.disk.tidy(OTHER, [])
    assert [p.name for p in device.staging.iterdir()] == []
    assert [p.name for p in (device.state / "staging").iterdir()] == []
