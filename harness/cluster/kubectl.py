"""kubectl, with a kubeconfig and a home of its own."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from harness.programs import program

_SECONDS = 120


class KubectlFailed(RuntimeError):
    """kubectl ended with an error; the message is what it printed."""


class Kubectl:
    """Called with a command line; the answer is what kubectl prints."""

    def __init__(self, config: Path, home: Path) -> None:
        self._config = config
        self._home = home  # its cache of what the server offers

    def __call__(self, *words: str, stdin: str = "") -> str:
        """Its standard output.

        Raises:
            KubectlFailed: when its exit code is not 0; with both outputs.
        """
        done = self.run(*words, stdin=stdin)
        if done.returncode != 0:
            raise KubectlFailed(f"kubectl {' '.join(words)} ended with {done.returncode}: {done.stderr}{done.stdout}")
        return done.stdout

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """The same, whatever it ends with."""
        return subprocess.run(
            [program("kubectl"), f"--kubeconfig={self._config}", *words],
            input=stdin,
            env={**os.environ, "HOME": str(self._home)},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )

    def apply(self, *manifests: dict[str, Any] | str, namespace: str = "default", flags: tuple[str, ...] = ()) -> str:
        """``kubectl apply -f -`` of manifests, which are YAML or objects."""
        texts = [manifest if isinstance(manifest, str) else json.dumps(manifest) for manifest in manifests]
        stream = "".join(f"---\n{text}\n" for text in texts)  # a stream that begins with a brace would be read as JSON
        return self("apply", "-n", namespace, *flags, "-f", "-", stdin=stream)

    def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any]:
        """One object as the server has it."""
        found: dict[str, Any] = json.loads(self("get", kind, name, "-n", namespace, "-o", "json"))
        return found


def kubeconfig(url: str, authority: Path, token: str) -> str:
    """The text of a kubeconfig file."""
    certificate = base64.b64encode(authority.read_bytes()).decode()
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "fleet", "cluster": {"server": url, "certificate-authority-data": certificate}}],
            "users": [{"name": "account", "user": {"token": token}}],
            "contexts": [{"name": "fleet", "context": {"cluster": "fleet", "user": "account"}}],
            "current-context": "fleet",
        },
        indent=2,
    )
