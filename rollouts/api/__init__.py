"""Manifests and deployments over REST (API-1)."""
