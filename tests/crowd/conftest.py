"""Many simulated devices at once: minutes of work, so these run by ``make test-crowd`` and not with the others."""

from tests.integration.simulation.conftest import rehearse

__all__ = ["rehearse"]
