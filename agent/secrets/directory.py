"""Secrets that somebody put on the device: one file each, ``<directory>/<secret>/<key>`` (AGT-10)."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from agent.secrets.problems import MAX_VALUE_BYTES, SecretMissing, SecretProblem, SourceDown, value_fault
from agent.wire.manifest import SecretRef

_FOR_OTHERS = 0o007
_CHANGED_BY_OTHERS = 0o002


def read(directory: str | Path, reference: SecretRef) -> str:
    """The value: the file's bytes as UTF-8 text, without one line break at their end.

    Editors and ``echo`` put that one there. A value that shall end in a line break gets two of them in its file.
    Links are followed inside of the directory only, as they are in a mounted Kubernetes secret.

    Raises:
        SecretMissing: there is no such file.
        SourceDown: the file system failed.
        SecretProblem: the file is not fit for a secret: of too many readers, too large, not text, outside.
    """
    root, path = Path(directory), Path(directory, reference.name, reference.key)
    try:
        real, real_root = path.resolve(strict=True), root.resolve(strict=True)
        if not real.is_relative_to(real_root):
            raise SecretProblem(reference, f"{path} is a link that leaves {root}; allowed is a file in it")
        for folder in (folder for folder in real.parents if folder.is_relative_to(real_root)):
            _check_folder(reference, folder)
        data = _data(reference, path, real)
    except RuntimeError:  # what Python 3.11 makes of links in a circle
        raise SecretProblem(reference, f"{path} is a link that leads nowhere") from None
    except OSError as error:
        raise _unreadable(reference, path, error) from None
    return _text(reference, path, data)


def _check_folder(reference: SecretRef, folder: Path) -> None:
    """Who may write there could put another value in the place of this one."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & _CHANGED_BY_OTHERS:
        raise SecretProblem(
            reference, f"every user of this device may change {folder} (mode {mode:04o}); run: chmod o-w {folder}"
        )


def _data(reference: SecretRef, path: Path, real: Path) -> bytes:
    """What is open is checked, so that nobody can exchange it in between. A pipe must not hold up the agent."""
    with open(real, "rb", opener=_open) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise SecretProblem(reference, f"{path} is not a file; a secret is a directory with one file per key")
        if found.st_mode & _FOR_OTHERS:
            mode = stat.S_IMODE(found.st_mode)
            raise SecretProblem(
                reference, f"{path} is open to every user of this device (mode {mode:04o}); run: chmod o= {path}"
            )
        data = file.read(MAX_VALUE_BYTES + 2)
    if len(data) > MAX_VALUE_BYTES + 1:
        raise SecretProblem(reference, f"{path} is larger than {MAX_VALUE_BYTES} bytes")
    return data


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _text(reference: SecretRef, path: Path, data: bytes) -> str:
    try:
        value = data.decode()
    except UnicodeDecodeError as error:
        raise SecretProblem(reference, f"{path} is not UTF-8 text (byte {error.start})") from None
    value = value.removesuffix("\n")
    fault = value_fault(value)
    if fault:
        raise SecretProblem(reference, f"{path}: {fault}")
    return value


def _unreadable(reference: SecretRef, path: Path, error: OSError) -> SecretProblem:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return SecretMissing(reference, f"{path} does not exist")
    if error.errno in (errno.EACCES, errno.EPERM):
        return SecretProblem(reference, f"{path} cannot be read by the agent's user: {error.strerror}")
    if error.errno in (errno.EISDIR, errno.ELOOP, errno.ENXIO):
        return SecretProblem(reference, f"{path} is not a file: {error.strerror}")
    return SourceDown(reference, f"{path} cannot be read at the moment: {error.strerror}")
