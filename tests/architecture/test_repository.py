"""What the repository must not depend on or reveal."""

from __future__ import annotations

import re
import subprocess

from tests.architecture.source import ROOT

#: In two pieces, so that this file is not found by its own search.
INDEX_HOSTS = re.compile("py" r"pi\.org|python" r"hosted\.org|index-" r"url\s*=")


def test_the_lock_pins_by_hash_and_names_no_index() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    pinned = re.findall(r"^([a-z0-9._-]+)==\S+.*\\\n    --hash=sha256:", lock, re.MULTILINE)
    assert len(pinned) == len(re.findall(r"^[a-z0-9]", lock, re.MULTILINE))
    assert "://" not in lock


def test_no_file_names_a_package_index() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    naming = [path.name for path in paths if path.is_file() and INDEX_HOSTS.search(path.read_text(errors="replace"))]
    assert not naming
