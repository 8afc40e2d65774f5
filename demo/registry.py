"""A container registry on a free loopback port, for the demo and for tests: Debian's ``docker-registry``."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

_CONFIG = """\
version: 0.1
log: {{level: warn}}
storage:
  filesystem: {{rootdirectory: {storage}}}
  delete: {{enabled: true}}
http:
  addr: {address}
"""


_TLS = """\
  tls: {{certificate: {certificate}, key: {key}}}
auth:
  htpasswd: {{realm: registry, path: {htpasswd}}}
"""


@dataclass(frozen=True)
class Guard:
    """What makes a registry private: a certificate with key and authority, and an htpasswd file (with bcrypt)."""

    authority: Path
    certificate: Path
    key: Path
    htpasswd: Path


def free_port() -> int:
    """A loopback TCP port that nobody holds right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class LoopbackRegistry:
    """Serves images from ``folder`` until :meth:`stop`; a context manager. With a ``guard`` by HTTPS, to its users.

    Raises:
        FileNotFoundError: when ``docker-registry`` is not installed.
        TimeoutError: when it does not answer in time; the message has the end of its log.
    """

    def __init__(self, folder: Path, guard: Guard | None = None) -> None:
        program = shutil.which("docker-registry")
        if program is None:
            raise FileNotFoundError("docker-registry is not installed; on Debian: apt-get install docker-registry")
        self._program = program
        self._folder = folder
        self._guard = guard
        self.address = f"127.0.0.1:{free_port()}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> LoopbackRegistry:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, or start it again on the same port with the same images."""
        self._folder.mkdir(parents=True, exist_ok=True)
        config = self._folder / "registry.yml"
        text = _CONFIG.format(storage=self._folder / "storage", address=self.address)
        config.write_text(text + (_TLS.format(**vars(self._guard)) if self._guard else ""))
        with (self._folder / "registry.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "serve", str(config)], stdout=log, stderr=log, start_new_session=True
            )
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop serving; the images stay in the folder."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def _wait_until_it_answers(self, seconds: float = 20.0) -> None:
        scheme, context = (
            ("https", ssl.create_default_context(cafile=self._guard.authority)) if self._guard else ("http", None)
        )
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{scheme}://{self.address}/v2/", timeout=2, context=context):
                    return
            except urllib.error.HTTPError:
                return  # it answers, though not to us
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        log = (self._folder / "registry.log").read_text(errors="replace")[-2000:]
        raise TimeoutError(f"docker-registry did not answer on {self.address} within {seconds:.0f} s; its log: {log}")
