"""Reading the mutants that are kept beside this file (README.md has the format)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec

Id = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60)]


class CatalogueError(Exception):
    """The mutants as written can't be run; one line for each fault."""


class Mutant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One small, wrong change, and the tests that have to notice it."""

    id: Id
    clause: str
    why: str
    file: str
    find: str
    replace: str
    tests: Annotated[list[str], msgspec.Meta(min_length=1)]
    database: Literal["sqlite", "postgres"] = "sqlite"


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mutant: list[Mutant]


def load(folder: Path, *, root: Path) -> list[Mutant]:
    """All mutants of the ``*.toml`` files in ``folder``.

    Raises:
        CatalogueError: for an unknown field, an id used twice, a text that isn't found exactly once, …
    """
    mutants: list[Mutant] = []
    faults: list[str] = []
    for path in sorted(folder.glob("*.toml")):
        try:
            mutants += msgspec.toml.decode(path.read_bytes(), type=_File).mutant
        except msgspec.MsgspecError as error:
            faults.append(f"{path.name}: {error}")
    faults += [fault for mutant in mutants for fault in _faults(mutant, root)]
    faults += [f"{name}: used for more than one mutant" for name in _repeated(mutant.id for mutant in mutants)]
    if faults:
        raise CatalogueError("\n".join(faults))
    return mutants


def choose(mutants: Sequence[Mutant], ids: Sequence[str]) -> list[Mutant]:
    """Those with these ids, all when none is given; raises ``CatalogueError`` for an id that nobody has."""
    if unknown := set(ids) - {mutant.id for mutant in mutants}:
        known = ", ".join(mutant.id for mutant in mutants)
        raise CatalogueError(f"no mutant is called {', '.join(sorted(unknown))}; there are: {known}")
    return [mutant for mutant in mutants if not ids or mutant.id in ids]


def without_mutant(guarded: Iterable[str], mutants: Sequence[Mutant]) -> list[str]:
    """The clauses that are said to be guarded by a mutant and have none."""
    return sorted(set(guarded) - {mutant.clause for mutant in mutants})


def _faults(mutant: Mutant, root: Path) -> Iterable[str]:
    path = root / mutant.file
    if not path.is_file():
        yield f"{mutant.id}: the file {mutant.file} does not exist"
    elif (found := path.read_text(encoding="utf-8").count(mutant.find)) != 1:
        yield f"{mutant.id}: its text is {found} times in {mutant.file}; it has to be there exactly once"
    if mutant.find == mutant.replace:
        yield f"{mutant.id}: find and replace are the same"
    for test in mutant.tests:
        if not (root / test.partition("::")[0]).exists():
            yield f"{mutant.id}: the test {test} does not exist"


def _repeated(ids: Iterable[str]) -> list[str]:
    return sorted(name for name, times in Counter(ids).items() if times > 1)
