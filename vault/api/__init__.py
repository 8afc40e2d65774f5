"""Secrets over REST (API-1)."""
