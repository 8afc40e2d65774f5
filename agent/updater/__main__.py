"""``python -m agent.updater`` and ``fleet-updater``."""

import sys

from agent.updater.cli import main

if __name__ == "__main__":
    sys.exit(main())
