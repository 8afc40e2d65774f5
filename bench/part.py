"""One part of the benchmarks in a process of its own: Django can be set up for one database only.

Writes a JSON line for each figure; what people shall see meanwhile goes to standard error.
"""

from __future__ import annotations

import importlib
import sys

import msgspec

from bench.installation import installed


def main(name: str) -> None:
    """Measure ``bench.<name>`` on an installation of its own."""
    with installed() as installation:
        for figure in importlib.import_module(f"bench.{name}").measure(installation):
            print(msgspec.json.encode(figure).decode(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
