"""A deployment's manifest as text, and an example of one."""

from __future__ import annotations

from rollouts.selectors.manifests import dump, text

__all__ = ["EXAMPLE", "dump", "text"]

EXAMPLE = """\
apiVersion: fleet.nationtech.io/v1alpha1
kind: Deployment
metadata:
  name: my-app
spec:
  allowedGroups: [lab]
  targetSelector:
    matchLabels:
      role: analyzer
  rollout:
    strategy: Immediate
  score:
    type: PodmanV0
    data:
      services:
        - name: my-app
          image: registry.example.com/my-app:1.0
          ports: ["8080:8080"]
          restart_policy: unless-stopped
"""
