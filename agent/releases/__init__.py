"""Releases of the agent: what they say of themselves, how they are fetched, unpacked and kept on a device."""
