"""Who the agent is to image registries (AGT-15): from this device's own configuration, else from the control plane.

Passwords are read when a pull needs them, and are in memory only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from agent.config import Registry
from agent.control import ControlError
from agent.images import ImageStock
from agent.runtime.base import Image, ImageUnavailable, Login, LoginRefused, Runtime
from agent.secrets import directory
from agent.secrets.problems import SecretProblem
from agent.wire.images import registry_of
from agent.wire.messages import SecretsReply, SecretsRequest

T = TypeVar("T")

_DOCKER_HUB = "docker.io"
_NAMES_OF_DOCKER_HUB = ("index.docker.io", "registry-1.docker.io")


class LoginSource:
    """Where logins come from, for all deployments. ``ask_control`` is the control plane's call."""

    def __init__(
        self,
        configured: Mapping[str, Registry],
        folder: Path,
        ask_control: Callable[[SecretsRequest], SecretsReply],
    ) -> None:
        self._configured = {_usual(name): registry for name, registry in configured.items()}
        self._folder = folder
        self._ask_control = ask_control

    def is_configured(self, registry: str) -> bool:
        return _usual(registry) in self._configured

    def find(self, uid: str, registry: str) -> Login | None:
        """The login of the deployment ``uid`` for one registry, if there is any.

        Raises:
            SecretProblem: the configuration has one whose password cannot be read.
            ControlError: the control plane cannot be asked.
        """
        own = self._configured.get(_usual(registry))
        if own is not None:
            return Login(registry, own.username, directory.read(self._folder, own.password))
        reply = self._ask_control(SecretsRequest(deployment=uid, registries=[registry]))
        given = (found for found in reply.registries if _usual(found.registry) == _usual(registry))
        return next((Login(registry, found.username, found.password) for found in given), None)


class Logins:
    """The logins that the images of one deployment need; asked for once, and anew after a registry refused one."""

    def __init__(self, uid: str, source: LoginSource) -> None:
        self._uid = uid
        self._source = source
        self._known: dict[str, Login | None] = {}
        self._unasked: dict[str, str] = {}

    def of(self, image: str) -> Login | None:
        """The login for an image's registry; ``None`` when there is none, or nobody to ask: then it may be public.

        A name without a registry gets none: Podman may look for it in several places, and each would see the password.

        Raises:
            ImageUnavailable: the configuration has one whose password cannot be read.
        """
        registry = registry_of(image)
        if not registry or registry in self._known:
            return self._known.get(registry)
        self._unasked.pop(registry, None)
        try:
            self._known[registry] = self._source.find(self._uid, registry)
        except SecretProblem as error:
            raise ImageUnavailable(f"image {image}: login for registry {registry}: {error}") from None
        except ControlError as error:
            self._unasked[registry] = str(error)
        return self._known.get(registry)

    def refused(self, image: str) -> str:
        """The registry did not let us in: forget the login, and say what to do."""
        registry = registry_of(image)
        login = self._known.pop(registry, None)
        if not registry:
            return "write the image's name with its registry (docker.io/…): a short name gets no login"
        if login is None:
            unasked = self._unasked.get(registry)
            reason = f", and the control plane could not be asked for one ({unasked})" if unasked else ""
            return (
                f"there is no login for {registry}{reason}; run: fleetctl secret set-registry NAME {registry}, or add "
                f'[registries."{registry}"] to the configuration of the device'
            )
        place = f'[registries."{registry}"]' if self._source.is_configured(registry) else "the control plane"
        return f"{registry} does not let user {login.username!r} of {place} have it; correct the password or the rights"


class ImageSupply:
    """The images of one deployment, asked for and fetched with the logins that they need."""

    def __init__(self, runtime: Runtime, stock: ImageStock, logins: Logins) -> None:
        self._runtime = runtime
        self._stock = stock
        self._logins = logins

    def image(self, reference: str) -> Image | None:
        """The image that is here already; see :meth:`agent.runtime.base.Runtime.image`."""
        return self._runtime.image(reference)

    def probe(self, reference: str) -> None:
        """Raises :class:`ImageUnavailable` with the registry's own words and what to do."""
        self._with_login(reference, self._runtime.probe)

    def pull(self, reference: str) -> Image:
        """Raises :class:`ImageUnavailable` with the registry's own words and what to do."""
        return self._with_login(reference, self._stock.pull)

    def _with_login(self, reference: str, call: Callable[[str, Login | None], T]) -> T:
        try:
            return call(reference, self._logins.of(reference))
        except LoginRefused as error:
            raise LoginRefused(f"{error}; {self._logins.refused(reference)}") from None


def _usual(registry: str) -> str:
    """Lower case; Docker Hub has several names."""
    lower = registry.lower()
    return _DOCKER_HUB if lower in _NAMES_OF_DOCKER_HUB else lower
