"""``python -m tests.mutants [ID…]``: is each kept mutant noticed by the tests it names?"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.mutants import catalogue, runner
from tests.support.clauses import claimed

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def main(ids: list[str]) -> int:
    """Run them, two at a time on two cores; 0 when every one is noticed and every guarded clause has one."""
    console = Console(width=None if sys.stdout.isatty() else 160)
    try:
        mutants = catalogue.load(HERE, root=ROOT)
        chosen = catalogue.choose(mutants, ids)
    except catalogue.CatalogueError as error:
        console.print(str(error), markup=False)
        return 2
    at_once = max(1, min(4, os.cpu_count() or 1))
    with runner.workshop(ROOT, copies=at_once) as place:
        console.print(f"The tests of {len(chosen)} mutants without a mutation …")
        if output := place.faults_unmutated(chosen):
            console.print(output, markup=False)
            console.print("They have to pass before a mutant can tell anything.")
            return 1
        verdicts = list(_shown(console, runner.judge_all(place, chosen, at_once=at_once)))
    console.print(_table(verdicts))
    bare = [] if ids else catalogue.without_mutant([c.id for c in claimed() if c.guarded], mutants)
    for clause in bare:
        console.print(f"{clause} is in bold in docs/reference/behaviour.md and has no mutant")
    noticed = sum(not verdict.fault for verdict in verdicts)
    console.print(f"{noticed} of {len(verdicts)} mutants noticed")
    return 1 if bare or noticed < len(verdicts) else 0


def _shown(console: Console, verdicts: Iterable[runner.Verdict]) -> Iterator[runner.Verdict]:
    for verdict in verdicts:
        console.print(f"  {verdict.mutant.id}: {verdict.fault or 'noticed'} ({verdict.seconds:.0f} s)", markup=False)
        yield verdict


def _table(verdicts: list[runner.Verdict]) -> Table:
    table = Table("clause", "mutant", "noticed by", box=None, pad_edge=False)
    for verdict in verdicts:
        table.add_row(verdict.mutant.clause, verdict.mutant.id, verdict.fault or verdict.noticed_by)
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
