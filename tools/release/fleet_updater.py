"""What a release's ``fleet-updater`` runs."""

import sys

from agent.updater.cli import main

sys.exit(main())
