"""etcd and kube-apiserver on free loopback ports, in a folder of their own, gone without a trace.

There is no controller manager, so nothing collects garbage and nothing runs pods; API, RBAC, CRDs, watches and
server-side apply are the real ones.
"""

from __future__ import annotations

import base64
import itertools
import json
import secrets
import shutil
import ssl
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from harness.cluster.kubectl import Kubectl, kubeconfig
from harness.ports import free_port
from harness.process import ManagedProcess
from harness.programs import program
from harness.waiting import wait_until

_KUBE_SECONDS = 120  # two busy cores; alone it is ready in two seconds


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody whom the API server knows by a token."""

    name: str
    groups: tuple[str, ...]
    token: str

    @classmethod
    def service(cls, namespace: str, name: str) -> Account:
        """A service account, with exactly the rights that are bound to it."""
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        return cls(f"system:serviceaccount:{namespace}:{name}", groups, secrets.token_hex(16))

    @property
    def line(self) -> str:
        """Its line in ``--token-auth-file``."""
        return f'{self.token},{self.name},{self.name},"{",".join(self.groups)}"\n'


def administrator() -> Account:
    """Somebody who may do everything."""
    return Account("admin", ("system:masters",), secrets.token_hex(16))


class Cluster:
    """An API server that knows an administrator and ``accounts``; a context manager.

    ``stop_api`` and ``start_api`` may alternate; address, tokens and content stay. ``watch_cache=False`` makes every
    list and watch go to etcd, as far as the server still offers that.

    Raises:
        ProgramMissing: when etcd, kube-apiserver or kubectl are neither in ``KUBEBUILDER_ASSETS`` nor on the path.
    """

    def __init__(self, *accounts: Account, watch_cache: bool = True) -> None:
        self.admin = administrator()
        self._accounts = (self.admin, *accounts)
        self._watch_cache = watch_cache
        self.folder = Path(tempfile.mkdtemp(prefix="fleet-kube-"))
        self._etcd_port, self._etcd_peers, self._port = free_port(), free_port(), free_port()
        self._numbers = itertools.count()
        self._etcd: ManagedProcess | None = None
        self._api: ManagedProcess | None = None

    def __enter__(self) -> Cluster:
        try:
            self._start_etcd()
            self.start_api()
            self._wait_for_namespace()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def port(self) -> int:
        return self._port

    @property
    def authority(self) -> Path:
        """The certificate that vouches for the server."""
        return self.folder / "certificates" / "apiserver.crt"

    @property
    def api_running(self) -> bool:
        return self._api is not None and self._api.running

    def kubeconfig(self, account: Account | None = None, *, url: str = "") -> Path:
        """A kubeconfig file for an account, the administrator by default; ``url`` for a way round, as by a proxy."""
        account = account or self.admin
        path = self.folder / f"kubeconfig-{next(self._numbers)}"
        path.touch(mode=0o600)
        path.write_text(kubeconfig(url or self.url, self.authority, account.token))
        return path

    def kubectl(self, account: Account | None = None) -> Kubectl:
        """kubectl for an account, the administrator by default; what it learns of the server is its own."""
        config = self.kubeconfig(account)
        return Kubectl(config, config.with_suffix(".home"))

    def start_api(self) -> None:
        """Serve; nothing when it runs already."""
        if self.api_running:
            return
        self._api = ManagedProcess("kube-apiserver", self._api_command(), log=self.folder / "kube-apiserver.log")
        self._api.start(self._api_ready, seconds=_KUBE_SECONDS)

    def stop_api(self) -> None:
        """End the API server in order, as an upgrade of the cluster does."""
        if self._api is not None:
            self._api.stop()
            self._api = None

    def kill_api(self) -> None:
        """End the API server at once, as a power loss does; connections are reset."""
        if self._api is not None:
            self._api.kill()
            self._api = None

    def restart_api(self) -> None:
        self.kill_api()
        self.start_api()

    def ask(self, method: str, path: str, body: Any = None, *, kind: str = "application/json") -> Any:
        """One request of the administrator's, without kubectl's rounds; ``kind`` is the body's media type.

        Raises:
            urllib.error.HTTPError: when the server refuses it.
        """
        request = urllib.request.Request(
            f"{self.url}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.admin.token}", "Content-Type": kind},
            method=method,
        )
        context = ssl.create_default_context(cafile=str(self.authority))
        with urllib.request.urlopen(request, timeout=60, context=context) as answer:
            text = answer.read()
        return json.loads(text) if text.startswith(b"{") else text.decode()

    def find(self, path: str) -> Any:
        """What is at an address; None when nothing is."""
        try:
            return self.ask("GET", path)
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            return None

    def served(self, group: str, version: str) -> set[str]:
        """What the server tells clients that it has of a group, by plural; nothing yet when it has just begun."""
        found = self.find(f"/apis/{group}/{version}")
        return {each["name"] for each in found["resources"]} if found else set()

    def empty(self, resources: str) -> None:
        """Remove all objects below an address such as ``/apis/GROUP/VERSION/deployments``, whatever holds them."""
        base, _, plural = resources.rpartition("/")
        for each in self.ask("GET", resources)["items"]:
            metadata = each["metadata"]
            inside = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
            path = f"{base}{inside}/{plural}/{metadata['name']}"
            with _unless_gone():
                self.ask("DELETE", path)
                if metadata.get("finalizers"):
                    self.ask("PATCH", path, {"metadata": {"finalizers": None}}, kind="application/merge-patch+json")

    def compact(self) -> None:
        """Forget history: an API server that starts after this answers older resource versions with 410."""
        revision = self._ask_etcd("/v3/kv/range", {"key": _base64("/")})["header"]["revision"]
        self._ask_etcd("/v3/kv/compaction", {"revision": revision, "physical": True})

    def close(self) -> None:
        """End both and remove the folder."""
        self.kill_api()
        if self._etcd is not None:
            self._etcd.kill()
            self._etcd = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self) -> str:
        """The end of the API server's log."""
        return self._api.tail() if self._api else "the API server is not running"

    def _start_etcd(self) -> None:
        url, peers = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._etcd_peers}"
        command: list[str | Path] = [program("etcd"), "--data-dir", self.folder / "etcd"]
        command += ["--listen-client-urls", url, "--advertise-client-urls", url]
        command += ["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers]
        command += ["--initial-cluster", f"default={peers}"]
        self._etcd = ManagedProcess("etcd", command, log=self.folder / "etcd.log")
        self._etcd.start(self._etcd_ready)

    def _api_command(self) -> list[str | Path]:
        tokens, key = self.folder / "tokens.csv", self.folder / "service-accounts.key"
        if not key.exists():
            tokens.touch(mode=0o600)
            tokens.write_text("".join(account.line for account in self._accounts))
            _make_key(key)
        return [
            program("kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            f"--secure-port={self._port}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self.folder / 'certificates'}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            f"--token-auth-file={tokens}",
            "--disable-admission-plugins=ServiceAccount",
            f"--watch-cache={str(self._watch_cache).lower()}",
        ]

    def _api_ready(self) -> bool:
        request = urllib.request.Request(f"{self.url}/readyz", headers={"Authorization": f"Bearer {self.admin.token}"})
        try:
            context = ssl.create_default_context(cafile=str(self.authority))
            with urllib.request.urlopen(request, timeout=5, context=context) as answer:
                return bool(answer.status == 200)
        except OSError:  # not there yet, not ready yet, or no certificate yet
            return False

    def _wait_for_namespace(self) -> None:
        what = "the namespace default is there"
        wait_until(lambda: self.find("/api/v1/namespaces/default"), seconds=_KUBE_SECONDS, what=what)

    def _etcd_ready(self) -> bool:
        try:
            self._ask_etcd("/v3/maintenance/status", {})
        except (OSError, urllib.error.URLError):
            return False
        return True

    def _ask_etcd(self, path: str, question: dict[str, Any]) -> dict[str, Any]:
        """etcd's own API as JSON; etcdctl would be one more package."""
        request = urllib.request.Request(f"http://127.0.0.1:{self._etcd_port}{path}", json.dumps(question).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
        return found


@contextmanager
def _unless_gone() -> Iterator[None]:
    """An object that somebody else has removed in between."""
    try:
        yield
    except urllib.error.HTTPError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise


def _make_key(path: Path) -> None:
    subprocess.run(
        ["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", str(path)],
        check=True,
        capture_output=True,
    )


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
