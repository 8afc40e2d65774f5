"""What a release's ``fleet-agent`` runs."""

import sys

from agent.cli import main

sys.exit(main())
