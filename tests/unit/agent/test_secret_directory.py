"""Secrets in files on the device: what is taken, what is refused, and in which words."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.secrets.directory import read
from agent.secrets.problems import MAX_VALUE_BYTES, SecretMissing, SecretProblem, SourceDown
from agent.wire.manifest import SecretRef

PASSWORD = SecretRef("db", "password")
VALUE = "hunter2-hunter2"

pytestmark = pytest.mark.clause("AGT-10")


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    def put(data: bytes = VALUE.encode(), mode: int = 0o640) -> Path:
        path = tmp_path / "secrets" / "db" / "password"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)
        return path

    return put


def refused(directory: Path, kind: type[SecretProblem] = SecretProblem) -> str:
    with pytest.raises(SecretProblem) as caught:
        read(directory, PASSWORD)
    assert type(caught.value) is kind
    assert VALUE not in f"{caught.value!r} {caught.value}"
    return str(caught.value).replace(str(directory), "DIR")


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"plain", "plain"),
        (b"with the editor's end\n", "with the editor's end"),
        (b"meant to end so\n\n", "meant to end so\n"),
        (b"-----BEGIN KEY-----\nabc\n-----END KEY-----\n", "-----BEGIN KEY-----\nabc\n-----END KEY-----"),
        ("“Grüße” \t'$HOME' \\n\r\n".encode(), "“Grüße” \t'$HOME' \\n\r"),
        (b"", ""),
        (b"x" * MAX_VALUE_BYTES + b"\n", "x" * MAX_VALUE_BYTES),
    ],
)
def test_a_file_is_its_text_without_one_line_break_at_the_end(
    put: Callable[..., Path], tmp_path: Path, data: bytes, value: str
):
    put(data)
    assert read(tmp_path / "secrets", PASSWORD) == value


@given(value=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=200))
def test_any_text_that_can_be_an_environment_variable_comes_back(tmp_path_factory: pytest.TempPathFactory, value: str):
    path = tmp_path_factory.getbasetemp() / "any" / "db" / "password"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(f"{value}\n".encode())
    path.chmod(0o600)
    assert read(path.parents[1], PASSWORD) == value


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (VALUE.encode() + b"\0", "DIR/db/password: its value has a NUL character"),
        (VALUE.encode() + b"\xff", "DIR/db/password is not UTF-8 text (byte 15)"),
        (VALUE.encode() * 20_000, "DIR/db/password is larger than 262144 bytes"),
        (b"x" * MAX_VALUE_BYTES + b"y", "DIR/db/password: its value has 262145 bytes; allowed are 262144"),
    ],
)
def test_what_is_no_text_for_a_variable_is_refused(put: Callable[..., Path], tmp_path: Path, data: bytes, words: str):
    put(data)
    assert words in refused(tmp_path / "secrets")


@pytest.mark.parametrize("mode", [0o644, 0o602, 0o601, 0o666])
def test_a_file_that_others_may_open_is_refused(put: Callable[..., Path], tmp_path: Path, mode: int):
    put(mode=mode)
    assert refused(tmp_path / "secrets") == (
        f"secret db/password: DIR/db/password is open to every user of this device (mode {mode:04o}); "
        "run: chmod o= DIR/db/password"
    )


@pytest.mark.parametrize("folder", ["", "db"])
def test_a_folder_in_which_others_may_exchange_files_is_refused(put: Callable[..., Path], tmp_path: Path, folder: str):
    put()
    open_folder = tmp_path / "secrets" / folder
    open_folder.chmod(0o777)
    shown = f"DIR/{folder}".rstrip("/")
    assert refused(tmp_path / "secrets") == (
        f"secret db/password: every user of this device may change {shown} (mode 0777); run: chmod o-w {shown}"
    )


def test_a_link_may_stay_inside_as_in_a_mounted_kubernetes_secret(put: Callable[..., Path], tmp_path: Path):
    path = put()
    data = path.parent / "..2026" / "password"
    data.parent.mkdir()
    path.rename(data)
    (path.parent / "..data").symlink_to("..2026")
    path.symlink_to("..data/password")
    assert read(tmp_path / "secrets", PASSWORD) == VALUE


def test_a_link_that_leaves_is_refused(put: Callable[..., Path], tmp_path: Path):
    path = put()
    outside = tmp_path / "outside"
    path.rename(outside)
    path.symlink_to(outside)
    assert "DIR/db/password is a link that leaves DIR" in refused(tmp_path / "secrets")
    path.unlink()
    path.parent.rmdir()
    (tmp_path / "elsewhere").mkdir()
    outside.rename(tmp_path / "elsewhere" / "password")
    path.parent.symlink_to(tmp_path / "elsewhere")
    assert "DIR/db/password is a link that leaves DIR" in refused(tmp_path / "secrets")


def test_links_in_a_circle_a_folder_and_a_pipe_are_refused(put: Callable[..., Path], tmp_path: Path):
    path = put()
    path.unlink()
    path.symlink_to("password")
    assert "DIR/db/password is a link that leads nowhere" in refused(tmp_path / "secrets")
    path.unlink()
    path.mkdir()
    assert "DIR/db/password is not a file" in refused(tmp_path / "secrets")
    path.rmdir()
    os.mkfifo(path, 0o600)
    assert "DIR/db/password is not a file" in refused(tmp_path / "secrets")


def test_a_missing_one_is_told_from_one_that_is_refused(tmp_path: Path, put: Callable[..., Path]):
    assert refused(tmp_path / "secrets", SecretMissing) == "secret db/password: DIR/db/password does not exist"
    put().unlink()
    assert refused(tmp_path / "secrets", SecretMissing) == "secret db/password: DIR/db/password does not exist"


def test_no_right_to_read_is_said_as_such(put: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    put()
    monkeypatch.setattr(os, "open", failing(PermissionError(13, "Permission denied")))
    assert refused(tmp_path / "secrets") == (
        "secret db/password: DIR/db/password cannot be read by the agent's user: Permission denied"
    )


def test_a_failing_disk_does_not_mean_that_the_secret_is_gone(
    put: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    put()
    monkeypatch.setattr(os, "open", failing(OSError(5, "Input/output error")))
    assert "cannot be read at the moment: Input/output error" in refused(tmp_path / "secrets", SourceDown)


def failing(error: OSError) -> Callable[..., int]:
    def fail(*_: object, **__: object) -> int:
        raise error

    return fail
