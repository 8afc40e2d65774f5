"""Log lines that people read and programs parse (logfmt), with the object and device they are about (OPS-3).

Pass ids as ``extra={"device": …, "deployment": …}``.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

FIELDS = ("device", "deployment", "revision", "job", "status")


class LineFormatter(logging.Formatter):
    """``at=… level=… logger=… msg=… device=…``; values with spaces or quotes are JSON strings."""

    def format(self, record: logging.LogRecord) -> str:
        parts = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        parts |= {name: str(getattr(record, name)) for name in FIELDS if hasattr(record, name)}
        line = " ".join(f"{name}={_value(text)}" for name, text in parts.items())
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _value(text: str) -> str:
    plain = text and text.isprintable() and not any(mark in text for mark in ' "=')
    return text if plain else json.dumps(text, ensure_ascii=False)
