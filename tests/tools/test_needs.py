"""A test whose program is missing is skipped and listed on a developer's machine, and fails in CI."""

from __future__ import annotations

import pytest

from tests.support import needs


@pytest.fixture(autouse=True)
def nothing_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(needs, "_missing", set())


def test_it_is_skipped_and_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="podman is not installed"):
        needs.need("podman")
    assert [line.partition(";")[0] for line in needs.missing()] == ["the program podman is not installed"]


def test_it_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"podman is not installed; on Debian: .* every test has to run"):
        needs.need("podman")
