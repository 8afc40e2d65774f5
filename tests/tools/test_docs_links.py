"""Links between documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import docs_links


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        ("[a](other.md)", ""),
        ("[a](other.md#two-words)", ""),
        ("[a](#here)", ""),
        ("[a](https://example.com/x)", ""),
        ("```\n[a](nowhere.md)\n```", ""),
        ("[a](nowhere.md)", "page.md: nowhere.md does not exist"),
        ("![a](images/a.png)", "page.md: images/a.png does not exist"),
        ("[a](other.md#three)", "page.md: other.md has no heading #three"),
        ("[a](#there)", "page.md: page.md has no heading #there"),
    ],
)
def test_a_link_leads_somewhere_or_is_named(tmp_path: Path, link: str, fault: str) -> None:
    (tmp_path / "other.md").write_text("# Two words\n")
    (tmp_path / "page.md").write_text(f"# Here\n\n{link}\n")
    assert list(docs_links.broken_links(tmp_path / "page.md", tmp_path)) == ([fault] if fault else [])
