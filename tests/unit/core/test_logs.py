from __future__ import annotations

import logging

from fleet.core.logs import LineFormatter


def test_a_line_names_the_device_and_quotes_what_has_spaces() -> None:
    record = logging.LogRecord("devices", logging.WARNING, __file__, 1, 'said "%s"', ("no",), None)
    record.created = 0.0
    record.device = "edge-1"
    assert LineFormatter().format(record) == (
        'at=1970-01-01T00:00:00.000+00:00 level=warning logger=devices msg="said \\"no\\"" device=edge-1'
    )


def test_a_line_break_in_a_value_starts_no_second_line() -> None:
    record = logging.LogRecord("devices", logging.INFO, __file__, 1, "a\nlevel=error", (), None)
    assert "\n" not in LineFormatter().format(record)
