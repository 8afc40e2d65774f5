"""``make bench``: every figure as a ratio to a floor or limit of the same run; ends with 1 when one is not met.

Not a test: a busy machine must not break a build. ``make bench BENCH_ARGS="polls releases"`` measures some only.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

import msgspec

from bench.figures import Figure, machine, table

PARTS = (
    "polls",
    "releases",
    "reports",
    "waiting",
    "memory",
    "passes",
    "applies",
    "simulated",
    "simulated-embedded",
)


def main() -> int:
    """Measure, print the table, and say whether all is as wanted."""
    parser = argparse.ArgumentParser(prog="make bench BENCH_ARGS=…", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all when none is named")
    chosen = parser.parse_args().parts or PARTS
    if unknown := sorted(set(chosen) - set(PARTS)):
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(PARTS)}")
    figures: list[Figure] = []
    for part in chosen:
        print(f"measuring {part} …", file=sys.stderr, flush=True)
        figures += _measured(part)
    print(machine())
    print(table(figures))
    return 0 if all(figure.good for figure in figures) else 1


def _measured(part: str) -> list[Figure]:
    done = subprocess.run([sys.executable, "-m", "bench.part", part], stdout=subprocess.PIPE, text=True, check=True)
    return [msgspec.json.decode(line, type=Figure) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    sys.exit(main())
