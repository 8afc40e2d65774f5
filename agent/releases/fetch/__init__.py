"""Fetching a release's archive from a web server or a registry, as the agent's user (UPG-1, UPG-3)."""
