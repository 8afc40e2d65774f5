"""``fleet-agent setup``: makes a Debian machine a device of the fleet, as often as one likes (AGT-13)."""
