"""What ``fleet-updater status`` and ``fleet-updater journal`` print. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from agent.updater.attempt import Attempt
from agent.wording import utc


def status_lines(attempts: Sequence[Attempt], *, is_running: bool) -> list[str]:
    """Newest attempt first."""
    lines = ["updater: runs" if is_running else "updater: does not run; see: systemctl status harmony-fleet-updater"]
    if any(attempt.waits_for_root for attempt in attempts):
        lines.append("no attempt is taken on until root runs: fleet-updater repair")
    if not attempts:
        lines.append("no attempt is known")
    for attempt in attempts:
        lines.append(f"attempt {attempt.uid}: {attempt.state}, since {utc(attempt.last.at)}")
        lines.append(f"  {attempt.last.step}: {_one_line(attempt.last.message)}")
    return lines


def journal_lines(attempt: Attempt) -> list[str]:
    """Every record with its time, and where the device was started anew in between."""
    lines = [f"attempt {attempt.uid} ({attempt.executor}): {attempt.state}"]
    boot_id = attempt.records[0].boot_id
    for record in attempt.records:
        if record.boot_id != boot_id:
            boot_id = record.boot_id
            lines.append(f"--- boot {boot_id}")
        when = utc(record.at)
        lines.append(f"{record.number:4} {when}  {record.step} {record.event}: {_one_line(record.message)}")
    return lines


def _one_line(text: str) -> str:
    return " ".join(text.split())
