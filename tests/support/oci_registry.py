"""Publishing a file in a registry, as ``oras push`` and ``skopeo`` do it over the distribution API."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from urllib.parse import urljoin

import msgspec
import requests

IMAGE = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
DOCKER = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG = b"{}"


class Publisher:
    """``url`` is the registry's; ``session`` has what the registry wants to see (a login, an authority)."""

    def __init__(self, url: str, repository: str, session: requests.Session | None = None) -> None:
        self._api = f"{url}/v2/{repository}"
        self._session = session or requests.Session()

    def archive(self, reference: str, *layers: bytes, type_: str = IMAGE) -> str:
        """An artifact of these layers; its digest."""
        manifest = {
            "schemaVersion": 2,
            "mediaType": type_,
            "config": self._blob(_CONFIG, "application/vnd.oci.empty.v1+json"),
            "layers": [self._blob(layer, "application/gzip") for layer in layers],
        }
        return self._manifest(reference, manifest, type_)

    def index(self, reference: str, manifests: Mapping[str, str]) -> str:
        """One for all architectures: ``{"amd64": digest}``."""
        entries = [
            {
                "mediaType": IMAGE,
                "digest": digest,
                "size": self._size(digest),
                "platform": {"os": "linux", "architecture": architecture},
            }
            for architecture, digest in manifests.items()
        ]
        return self._manifest(reference, {"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}, INDEX)

    def _size(self, digest: str) -> int:
        answer = self._session.get(f"{self._api}/manifests/{digest}", headers={"Accept": IMAGE}, timeout=10)
        return len(_checked(answer).content)

    def _blob(self, content: bytes, type_: str) -> dict[str, object]:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        begun = _checked(self._session.post(f"{self._api}/blobs/uploads/", timeout=10))
        place = urljoin(self._api, begun.headers["Location"])
        _checked(self._session.put(place, params={"digest": digest}, data=content, timeout=10))
        return {"mediaType": type_, "digest": digest, "size": len(content)}

    def _manifest(self, reference: str, manifest: dict[str, object], type_: str) -> str:
        body = msgspec.json.encode(manifest)
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        place = f"{self._api}/manifests/{reference or digest}"
        _checked(self._session.put(place, data=body, headers={"Content-Type": type_}, timeout=10))
        return digest


def _checked(answer: requests.Response) -> requests.Response:
    answer.raise_for_status()
    return answer
