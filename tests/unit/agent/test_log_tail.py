"""The end of a container's log, from a stream that may be cut anywhere and may have lines of any length."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.runtime.base import LogTail
from agent.runtime.log_tail import log_frames, tail


def frame(text: bytes) -> bytes:
    return struct.pack(">BxxxI", 1, len(text)) + text


def test_frames_that_are_cut_off_are_read_as_far_as_they_go():
    whole = frame(b"hello\n") + frame(b"boom")
    assert b"".join(log_frames([whole])) == b"hello\nboom"
    assert b"".join(log_frames([whole[:-2]])) == b"hello\nbo"
    assert b"".join(log_frames([b"\x01\0\0"])) == b""


@given(st.lists(st.binary(max_size=40)), st.integers(1, 9))
def test_frames_may_be_cut_anywhere(texts: list[bytes], size: int):
    whole = b"".join(map(frame, texts))
    parts = [whole[place : place + size] for place in range(0, len(whole), size)]
    assert b"".join(log_frames(parts)) == b"".join(texts)


@pytest.mark.clause("AGT-16")
@pytest.mark.parametrize(
    ("texts", "lines", "limit", "expected"),
    [
        ([], 5, 100, LogTail("")),
        ([b"a\n", b"b\n", b"c\n"], 2, 100, LogTail("b\nc")),
        ([b"a\n", b"b"], 5, 100, LogTail("a\nb")),
        ([b"a\n\n"], 5, 100, LogTail("a\n")),
        ([b"abcdefgh\n", b"ijkl\n"], 5, 10, LogTail("efgh\nijkl", is_cut=True)),
        ([b"abcdefgh\n", b"ijkl\n"], 1, 10, LogTail("ijkl")),
        ([b"x" * 50] * 50, 5, 10, LogTail("x" * 10, is_cut=True)),
        ([b"\xff\xc3\xa9\n"], 5, 100, LogTail("�é")),
    ],
)
def test_the_last_lines_of_them_the_last_bytes(texts: list[bytes], lines: int, limit: int, expected: LogTail):
    assert tail(texts, lines, limit) == expected
