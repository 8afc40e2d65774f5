"""The REST API for the agents that devices shall run."""
