"""Which release may follow which, by the formats that they read and write (UPG-8)."""

from __future__ import annotations

import pytest

from agent.releases.description import Format, formats_problem, place
from tests.unit.releases.kit import target

pytestmark = pytest.mark.clause("UPG-8")
ONE, BOTH, TWO = Format((1,), 1), Format((1, 2), 1), Format((1, 2), 2)


@pytest.mark.parametrize(
    ("installed", "candidate", "problem"),
    [
        (ONE, ONE, ""),
        (ONE, BOTH, ""),
        (BOTH, ONE, ""),
        (BOTH, TWO, ""),
        (TWO, BOTH, ""),
        (ONE, TWO, "it writes state in format 2, and the installed release reads 1"),
        (TWO, ONE, "it reads state in format 1, and the installed release has written 2"),
        (BOTH, Format((1, 2, 3), 3), "it writes state in format 3, and the installed release reads 1 or 2"),
        (ONE, Format((), 1), "it reads state in format none, and the installed release has written 1"),
    ],
)
def test_a_format_is_read_one_release_before_it_is_written(installed: Format, candidate: Format, problem: str) -> None:
    assert formats_problem({"state": candidate}, {"state": installed}) == problem


def test_what_only_one_of_both_knows_harms_nobody() -> None:
    assert formats_problem({"new": TWO, "state": ONE}, {"gone": TWO, "state": ONE}) == ""


@pytest.mark.clause("UPG-7")
def test_another_archive_of_the_same_version_is_another_folder() -> None:
    one, other = target(b"", sha256="a" * 64), target(b"", sha256="b" * 64)
    assert place(one) == "1.4.0-aaaaaaaaaaaa"
    assert place(one) != place(other)
