"""Cron's five fields."""

from __future__ import annotations

import pytest

from agent.wire import cron

pytestmark = pytest.mark.clause("TSK-9")


@pytest.mark.parametrize(
    "text", ["* * * * *", "0 3 * * 0", "*/15 0-6,22 1,15 1-12/2 *", "0 3 */1 * 1-5", "5/10 4 29 2 *", " 0  3 31 1,2 * "]
)
def test_good_expressions(text: str) -> None:
    assert cron.read(text) == tuple(text.split())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "has 0 fields; allowed: five"),
        ("@daily", "has 1 fields"),
        ("0 3 * * 0 2026", "has 6 fields"),
        ("60 3 * * *", "'60' as minute; allowed: 0 to 59"),
        ("0 24 * * *", "'24' as hour"),
        ("0 3 0 * *", "'0' as day of the month; allowed: 1 to 31"),
        ("0 3 * 13 *", "'13' as month"),
        ("0 3 * * 7", "'7' as day of the week; allowed: 0 to 6"),
        ("0 3 * * mon", "'mon' as day of the week; allowed: a list of"),
        ("*/0 * * * *", "a step from 1"),
        ("5-1 * * * *", "'5-1' as minute"),
        ("0 3 30 2 *", "a day that none of its months has"),
        ("0 3 31 2,4,6,9,11 *", "a day that none of its months has"),
        ("0 3 13 * 5", "days of the month and days of the week; allowed: one of the two"),
        ("0,,1 3 * * *", "'' as minute"),
        ("٣ 3 * * *", "as minute"),
    ],
)
def test_bad_expressions_say_what_is_allowed(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint.replace("*", r"\*")):
        cron.read(text)
