"""One part of the benchmarks in a process of its own: Django can be set up for one database only.

Writes a JSON line for each figure; what people shall see meanwhile goes to standard error.
"""

from __future__ import annotations

import importlib
import sys

import msgspec

from bench.installation import installed

EMBEDDED = "embedded"


def main(name: str) -> None:
    """Measure ``bench.<name>`` on an installation of its own; ``<name>-embedded`` is on SQLite and a folder."""
    module, _, variant = name.partition("-")
    with installed(embedded=variant == EMBEDDED) as installation:
        for figure in importlib.import_module(f"bench.{module}").measure(installation):
            print(msgspec.json.encode(figure).decode(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
