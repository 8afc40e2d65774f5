"""Where ``fleetctl secret set`` takes values from, and what it never repeats."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from fleet.ctl.commands.secrets import values_from
from fleet.ctl.errors import Exit, Refused

pytestmark = pytest.mark.clause("AGT-10", "API-2")


def pipe(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize(
    ("data", "value"),
    [(b"hunter2", "hunter2"), (b"hunter2 \n", "hunter2 "), (b"a\r\nb\r\n", "a\r\nb"), (b"a\n\n", "a\n"), (b"", "")],
)
def test_a_pipes_last_line_break_is_not_the_values(monkeypatch: pytest.MonkeyPatch, data: bytes, value: str) -> None:
    pipe(monkeypatch, data)
    assert values_from(["password=-", "old-"]) == {"password": value, "old": None}


def test_a_file_is_taken_as_it_is_and_its_last_line_break_is_mentioned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cert").write_bytes(b"one\r\ntwo\n")
    (tmp_path / "bare").write_bytes(b"s3cr3t")
    assert values_from([f"a=@{tmp_path}/cert", f"b=@{tmp_path}/bare"]) == {"a": "one\r\ntwo\n", "b": "s3cr3t"}
    shown = capsys.readouterr()
    assert shown.err == f"a: {tmp_path}/cert ends with a line break, which is now the end of the value\n"
    assert shown.out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["password=s3cr3t"], "password: a value on the command line stays in the shell's history"),
        (["password="], "password: a value on the command line"),
        (["password"], "password: there is no terminal to ask for it"),
        (["password=@/none/file"], "password: /none/file: No such file or directory"),
        (["password=-"], "standard input is no UTF-8 text; encode it first"),
        (["a=-", "b=-"], "only one KEY=- can be read from standard input"),
        (["a-", "a-"], "argument 2: each KEY is named once"),
        (["=-"], "argument 1: each KEY is named once"),
    ],
)
def test_what_cannot_be_taken_is_refused(monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str) -> None:
    pipe(monkeypatch, b"s3cr3t\xff")
    with pytest.raises(Refused) as caught:
        values_from(arguments)
    assert caught.value.code is Exit.USAGE
    assert words in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
