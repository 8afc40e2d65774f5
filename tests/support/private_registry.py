"""A site's own registry: HTTPS by a private authority, a login, and a Podman that is told of the authority.

Podman looks for certificates in ``/etc/containers/certs.d`` and, of the same shape, below the service's ``HOME``:
the tests take the latter, so that nothing of the machine is changed.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from demo.podman import IsolatedPodman
from demo.registry import Guard, LoopbackRegistry
from tests.support.authority import Authority
from tests.support.forward_proxy import ForwardProxy
from tests.support.podman import need_podman

#: How the registry is called behind the site's proxy; no name server knows it.
PROXIED = "registry.site.example"
USER, PASSWORD = "edge", "s3cret-right"
#: As ``htpasswd -nbB edge s3cret-right`` prints it, with a cost that suits tests.
HTPASSWD = "edge:$2b$04$NcEfOvw2.XB9Q0514ogbaOl4cpue8mw4HzbWNAU4lhoZDQpSU4zxO\n"


class _PodmanOfSite(IsolatedPodman):
    """With an environment as a drop-in of ``podman.service`` gives it. Loopback addresses go through no proxy."""

    proxy = ""

    def _environment(self) -> dict[str, str]:
        return super()._environment() | {"HOME": str(self.folder / "home"), "HTTPS_PROXY": self.proxy}


@dataclass(frozen=True)
class PrivateSite:
    podman: IsolatedPodman
    registry: LoopbackRegistry
    proxy: ForwardProxy
    #: Where the service looks for the registry's authority.
    trust: Path

    def tag(self, name: str) -> str:
        return f"{self.registry.address}/{name}"

    def publish(self, images: Mapping[str, Sequence[str]]) -> None:
        """Build and push images (``name:tag`` → command); Podman has none of them afterwards, and no login."""
        self.podman.cli("login", "--username", USER, "--password", PASSWORD, self.registry.address)
        for name, command in images.items():
            self.podman.build(self.tag(name), command=command)
            self.podman.push(self.tag(name))
            self.podman.cli("rmi", "--force", self.tag(name))
        self.podman.cli("logout", self.registry.address)


@contextlib.contextmanager
def private_site() -> Iterator[PrivateSite]:
    need_podman()
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="fleet-", dir="/tmp"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        authority = Authority(folder / "authority")
        (folder / "htpasswd").write_text(HTPASSWD)
        guard = Guard(authority.ca_file, *authority.issue("127.0.0.1", PROXIED), folder / "htpasswd")
        registry = stack.enter_context(LoopbackRegistry(folder / "registry", guard))
        proxy = stack.enter_context(ForwardProxy(hosts={f"{PROXIED}:443": registry.address}))
        podman = _PodmanOfSite(folder / "podman")
        podman.proxy = proxy.url
        trust = podman.folder / "home" / ".config" / "containers" / "certs.d"
        for host in (registry.address, PROXIED):
            (trust / host).mkdir(parents=True)
            shutil.copy(authority.ca_file, trust / host / "ca.crt")
        yield PrivateSite(stack.enter_context(podman), registry, proxy, trust / registry.address)
