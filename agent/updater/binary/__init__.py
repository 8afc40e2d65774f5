"""``agentUpgradeV1``: replaces the agent's executable, and restores the one before it unless the new one proves itself.

docs/design/fleet-agent-upgrades.md tells its states, limits and ends.
"""
