"""The agent's part in upgrades of its device: it hands attempts to the updater, and tells what became of them."""
