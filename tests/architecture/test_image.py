"""The image has all that the control plane is made of."""

from __future__ import annotations

import re

import pytest

from tests.architecture.source import ROOT, SERVERS

COPIED = re.findall(r"^COPY (\w+) \1$", (ROOT / "deploy" / "Containerfile").read_text(), re.M)


@pytest.mark.parametrize("folder", ["agent", "templates", *SERVERS])
def test_every_folder_of_the_source_is_in_the_image(folder: str) -> None:
    assert folder in COPIED
