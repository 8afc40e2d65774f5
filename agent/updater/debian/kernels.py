"""Which kernel a Debian boots next, from the names of its packages: pure but for the order of versions."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable

_PACKAGE = re.compile(r"^linux-image-(?:unsigned-)?(?P<release>\d.*?)(?:-unsigned)?$")
#: ``6.1.0-13-cloud-amd64``, ``6.1.0-0.deb11.13-amd64``, ``6.12.25+rpt-rpi-v8``, ``6.1.0-rpi7-rpi-v8``: a version, the
#: number of its binary interface, and the flavour, which is all that upgrades keep.
_RELEASE = re.compile(r"^\d[\w.~+]*(?:-(?:\d[\w.~+]*|rpi\d+|rc\d+))*-(?P<flavour>[a-z][a-z0-9-]*)$")

IsNewer = Callable[[str, str], bool]


def flavour(release: str) -> str:
    """The flavour of a kernel release; empty when it has none, as kernels that people build have."""
    found = _RELEASE.match(release)
    return found["flavour"] if found else ""


def releases(packages: Iterable[str]) -> list[str]:
    """Kernel releases that packages of these names bring; packages that only depend on the newest bring none."""
    found = (_PACKAGE.match(name) for name in packages if not name.endswith("-dbg"))
    return list(dict.fromkeys(match["release"] for match in found if match))


def newest(running: str, there: Iterable[str], is_newer: IsNewer) -> str | None:
    """The newest of the running flavour; ``None`` when no package brought a kernel of that flavour (SYS-4)."""
    wanted = flavour(running)
    same = [release for release in there if wanted and flavour(release) == wanted]
    if not same:
        return None

    def order(one: str, other: str) -> int:
        return 1 if is_newer(one, other) else -1

    return max(same, key=functools.cmp_to_key(order))
