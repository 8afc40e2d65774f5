"""An archive in a container registry: OCI's distribution API, as much of it as one layer takes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec
import requests

from agent.releases.fetch.client import Client, place, require, worse
from agent.releases.fetch.errors import FetchError
from agent.wire.artifacts import is_loopback
from agent.wire.manifest import AgentUpgrade

_MAX_BYTES = 4_194_304
_INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
_MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
_OK, _UNAUTHORISED = 200, 401
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_MOST = 1_000
T = TypeVar("T", bound=msgspec.Struct)


class _Platform(msgspec.Struct):
    architecture: str = ""


class _Descriptor(msgspec.Struct):
    digest: str
    platform: _Platform = msgspec.field(default_factory=_Platform)


class _Manifest(msgspec.Struct):
    """Of an image or artifact, or (``manifests``) an index of them."""

    layers: Annotated[list[_Descriptor], msgspec.Meta(max_length=_MOST)] = msgspec.field(default_factory=list)
    manifests: Annotated[list[_Descriptor], msgspec.Meta(max_length=_MOST)] = msgspec.field(default_factory=list)


class _Token(msgspec.Struct):
    token: str = ""
    access_token: str = ""


@dataclass(frozen=True, slots=True)
class _Repository:
    """``api``: the address of the repository's part of the distribution API; ``reference``: a tag or a digest."""

    api: str
    reference: str

    @classmethod
    def of(cls, url: str) -> _Repository:
        parts = urlsplit(url)
        name, at, digest = parts.path.lstrip("/").partition("@")
        if not at:
            name, _, digest = name.rpartition(":")
        scheme = "http" if is_loopback(parts.hostname or "") else "https"
        return cls(f"{scheme}://{parts.netloc}/v2/{name}", digest)


def blob_url(client: Client, target: AgentUpgrade) -> str:
    """The address of the layer that is the archive; the client is given what the registry wants to see for it.

    Raises:
        FetchError: the registry has no such reference, wants a login, or has no such layer there.
    """
    repository = _Repository.of(target.url)
    manifest = _manifest(client, repository, repository.reference)
    if manifest.manifests:
        manifest = _manifest(client, repository, _chosen(manifest, target))
    wanted = f"sha256:{target.sha256}"
    layers = [layer.digest for layer in manifest.layers]
    if wanted not in layers:
        found = ", ".join(layers[:5]) or "none"
        raise FetchError(f"{target.url} has no layer with the digest {wanted}; it has: {found}")
    return f"{repository.api}/blobs/{wanted}"


def _chosen(index: _Manifest, target: AgentUpgrade) -> str:
    """Of an index with one for each architecture, the device's."""
    fitting = [each for each in index.manifests if each.platform.architecture == target.architecture]
    chosen = fitting or (index.manifests if len(index.manifests) == 1 else [])
    if not chosen:
        found = ", ".join(each.platform.architecture or "any" for each in index.manifests[:10])
        raise FetchError(f"{target.url} has nothing for {target.architecture}; it has: {found}")
    return chosen[0].digest


def _manifest(client: Client, repository: _Repository, reference: str) -> _Manifest:
    url = f"{repository.api}/manifests/{reference}"
    headers = {"Accept": ", ".join((*_MANIFESTS, *_INDEXES))}
    with client.get(url, headers) as response:
        challenge = response.headers.get("WWW-Authenticate", "")
        if response.status_code != _UNAUTHORISED:
            return _read(response, url)
    client.trust(url, _token(client, challenge, url))
    with client.get(url, headers) as response:
        return _read(response, url)


def _token(client: Client, challenge: str, url: str) -> str:
    """What a registry gives to anybody who asks; a login is none of a device's business."""
    scheme, _, rest = challenge.partition(" ")
    asked = dict(_CHALLENGE.findall(rest))
    realm = asked.pop("realm", "")
    if scheme.lower() != "bearer" or worse(url, realm):
        raise FetchError(f"{place(url)} wants a login; devices fetch releases from registries that need none")
    query = urlencode({name: value for name, value in asked.items() if name in ("service", "scope")})
    with client.get(f"{realm}{'&' if '?' in realm else '?'}{query}") as response:
        require(response, realm, (_OK,))
        found = _decoded(response, realm, _Token)
    if not (token := found.token or found.access_token):
        raise FetchError(f"{place(realm)} gives no token to those who have no login")
    return token


def _read(response: requests.Response, url: str) -> _Manifest:
    require(response, url, (_OK,))
    return _decoded(response, url, _Manifest)


def _decoded(response: requests.Response, url: str, type_: type[T]) -> T:
    body = response.raw.read(_MAX_BYTES + 1, decode_content=True)
    if len(body) > _MAX_BYTES:
        raise FetchError(f"{place(url)} answered with more than {_MAX_BYTES:,} bytes")
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise FetchError(f"{place(url)} answered something that is no {type_.__name__.lstrip('_').lower()}") from None
