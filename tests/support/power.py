"""A disk that loses its power between any two steps: what of a folder would still be there."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_Node = tuple[int, int, str]
#: Whatever changes names or flushes.
_STEPS = ("fsync", "mkdir", "rename", "replace", "rmdir", "symlink", "unlink")


class FragileDisk:
    """Watches what a process does below ``folder``. Before and after each step ``look`` sees what a loss of power would
    leave: at worst nothing that was not flushed; or all names, with nothing in the files that were not flushed.
    """

    def __init__(self, folder: Path, ruin: Path, look: Callable[[Path], None]) -> None:
        self.losses = 0
        self._folder = folder
        self._ruin = ruin
        self._look = look
        self._is_looking = False
        self._names: dict[int, dict[str, _Node]] = {}
        self._bytes: dict[int, bytes] = {}
        for path in (folder, *folder.rglob("*")):
            self._flush(path)

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in _STEPS:
            monkeypatch.setattr(os, name, self._watched(name, getattr(os, name)))

    def _watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **more: Any) -> Any:
            if self._is_looking:
                return real(*arguments, **more)
            self._lose_power()
            done = real(*arguments, **more)
            if name == "fsync":
                self._flush(Path(os.readlink(f"/proc/self/fd/{arguments[0]}")))
            self._lose_power()
            return done

        return step

    def _flush(self, path: Path) -> None:
        if path.is_symlink():
            return
        number = path.stat().st_ino
        if path.is_dir():
            self._names[number] = {each.name: _node(each) for each in path.iterdir()}
        else:
            self._bytes[number] = path.read_bytes()

    def _lose_power(self) -> None:
        self._is_looking = True
        self.losses += 1
        for kind, names in (("worst", self._flushed), ("named", self._named)):
            there = self._ruin / f"{self.losses}-{kind}"
            self._restore(there, self._folder.stat().st_ino, names)
            self._look(there)
        self._is_looking = False

    def _restore(self, there: Path, number: int, names: Callable[[int], dict[str, _Node]]) -> None:
        there.mkdir(parents=True)
        for name, (child, mode, leads_to) in names(number).items():
            if stat.S_ISLNK(mode):
                (there / name).symlink_to(leads_to)
            elif stat.S_ISDIR(mode):
                self._restore(there / name, child, names)
            else:
                (there / name).write_bytes(self._bytes.get(child, b""))

    def _flushed(self, number: int) -> dict[str, _Node]:
        return self._names.get(number, {})

    def _named(self, number: int) -> dict[str, _Node]:
        for path in (self._folder, *self._folder.rglob("*")):
            if path.lstat().st_ino == number:
                return {each.name: _node(each) for each in path.iterdir()}
        return {}


def _node(path: Path) -> _Node:
    found = path.lstat()
    return found.st_ino, found.st_mode, os.readlink(path) if stat.S_ISLNK(found.st_mode) else ""
