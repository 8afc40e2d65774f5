"""What an image reference says about where the image comes from."""

from __future__ import annotations

#: ``host`` or ``host:port``, as an image reference begins with it.
REGISTRY = r"^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]{1,5})?$"


def registry_of(image: str) -> str:
    """``host[:port]`` in lower case; empty for a short name, which Podman looks up by its own configuration.

    The first part is a host when it has a dot or a port or is ``localhost``, as everywhere in the container world.
    """
    first, slash, _ = image.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    return first.lower() if is_host else ""
