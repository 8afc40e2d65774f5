"""The two images that docs/examples/analysis-api.yaml names, made on the spot from busybox."""

from __future__ import annotations

from demo.podman import IsolatedPodman

#: The registry's name in the example; the demo's Podman is told where it really is.
REGISTRY = "registry.example.com"
TAG = "1.0"

_MIGRATE = """\
set -e
echo 'migrating /data'
echo "schema=1" > /data/schema
echo 'done'
"""
_SERVE = """\
test -s /data/schema || { echo 'no schema: the migration has not run'; exit 1; }
mkdir -p /www
echo 'analysis-api is up' > /www/index.html
exec httpd -f -p 8080 -h /www
"""


def publish(podman: IsolatedPodman, registry: str) -> None:
    """Build both images, push them to the registry at this address, forget the local copies: the device has to pull."""
    for name, script in (("analysis-migrate", _MIGRATE), ("analysis-api", _SERVE)):
        reference = f"{registry}/{name}:{TAG}"
        podman.build(reference, command=["sh", "-c", script])
        podman.push(reference)
    podman.cli("rmi", "--all", "--force")
