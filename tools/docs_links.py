"""Says which link in the documents leads to a file or a heading that isn't there. ``make check`` runs it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

_LINK = re.compile(r"!?\[[^\]]*\]\((?P<address>[^)\s]+)(?:\s+\"[^\"]*\")?\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def main(root: Path) -> int:
    """Check every document below ``root``; the exit code is 1 when a link is broken."""
    pages = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("tests/**/*.md")]
    broken = [line for page in sorted(pages) for line in broken_links(page, root)]
    print("\n".join(broken) or f"{len(pages)} documents")
    return 1 if broken else 0


def broken_links(page: Path, root: Path) -> Iterator[str]:
    """One line for each broken link of a page: where it is and what it wants."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for match in _LINK.finditer(text):
        address, _, anchor = match["address"].partition("#")
        if ":" in address:
            continue  # outside; nothing here asks the network
        target = (page.parent / address) if address else page
        if not target.exists():
            yield f"{page.relative_to(root)}: {address} does not exist"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{page.relative_to(root)}: {address or page.name} has no heading #{anchor}"


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
