"""Task runs over REST (API-1)."""
