"""GET, with redirects that may lead to no worse place, and credentials that leave their own server for none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

import requests
import urllib3

from agent.causes import causes_of, reason
from agent.releases.fetch.errors import FetchError
from agent.version import VERSION
from agent.wire.artifacts import is_loopback, url_problem

TIMEOUT_SECONDS = (10.0, 60.0)  # to connect, between two bytes
MOST_REDIRECTS = 5
LONGEST_RETRY_SECONDS = 600.0
_REDIRECTS = (301, 302, 303, 307, 308)
_TEMPORARY = (408, 425, 429)
#: Even where the environment names one: behind a proxy, "this device" would be the proxy's own machine.
_NO_PROXY = {"http": "", "https": ""}
_HINTS = {
    401: "; it wants a login, and devices have none for it: publish it where none is needed",
    403: "; it may not be fetched from this device: allow it there, or publish it elsewhere",
    404: "; there is nothing there: look for a slip in the address, or publish it there",
}


@dataclass(frozen=True)
class Surroundings:
    """How this device reaches the world. ``credentials``: what is shown to whom, by origin, and to nobody else."""

    ca_file: str = ""
    proxy: str = ""
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)


class Client:
    """Belongs to one thread."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._session = requests.Session()
        self._session.headers["User-Agent"] = f"fleet-updater/{VERSION}"
        self._verify = surroundings.ca_file or None
        self._proxies = {"http": surroundings.proxy, "https": surroundings.proxy} if surroundings.proxy else None
        self._credentials = dict(surroundings.credentials)

    def trust(self, url: str, credential: str) -> None:
        """Show this credential to the server of that address from now on."""
        self._credentials[origin(url)] = credential

    @contextmanager
    def get(self, url: str, headers: Mapping[str, str] | None = None) -> Iterator[requests.Response]:
        """The answer at the end of all redirects, its body unread.

        Raises:
            FetchError: there is none, or a redirect leads where nothing may be fetched from.
        """
        try:
            response = self._follow(url, dict(headers or {}))
        except (requests.RequestException, OSError, ValueError) as error:
            raise FetchError(
                f"{place(url)} cannot be reached: {reason([*causes_of(error)])}", is_temporary=True
            ) from None
        try:
            yield response
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            words = reason([*causes_of(error)])
            raise FetchError(f"{place(url)} broke the connection: {words}", is_temporary=True) from None
        finally:
            response.close()

    def _follow(self, url: str, headers: dict[str, str]) -> requests.Response:
        for _ in range(MOST_REDIRECTS + 1):
            response = self._session.get(
                url,
                headers={"Accept-Encoding": "identity", **headers},
                auth=_Credential(self._credentials.get(origin(url), "")),
                verify=self._verify,
                proxies=_NO_PROXY if is_loopback(urlsplit(url).hostname or "") else self._proxies,
                timeout=TIMEOUT_SECONDS,
                allow_redirects=False,
                stream=True,
            )
            if response.status_code not in _REDIRECTS:
                return response
            response.close()
            url = _next(url, response.headers.get("Location", ""))
        raise FetchError(f"{place(url)} leads in circles: more than {MOST_REDIRECTS} redirects")


def require(response: requests.Response, url: str, allowed: tuple[int, ...]) -> None:
    """Raises FetchError when the status is none of these."""
    status = response.status_code
    if status in allowed:
        return
    is_temporary = status >= 500 or status in _TEMPORARY
    message = f"{place(url)} answered {status}{_HINTS.get(status, '')}"
    raise FetchError(message, is_temporary=is_temporary, retry_after=_retry_after(response))


def origin(url: str) -> str:
    """Scheme, host and port: who is at the other end."""
    parts = urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{port}"


def place(url: str) -> str:
    """An address as it may be shown and logged: a query may hold a signature."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def worse(url: str, target: str) -> str:
    """Why a server may not send us from one address to another, in words that follow the latter; empty when it may."""
    if problem := url_problem(target):
        return problem
    if urlsplit(target).scheme == "oci":
        return "is no address of a web server"
    return "leaves https" if urlsplit(url).scheme == "https" and urlsplit(target).scheme != "https" else ""


def _next(url: str, location: str) -> str:
    """Where a redirect leads: never out of encryption, and never to what is no server."""
    if not location:
        raise FetchError(f"{place(url)} redirects to nowhere: its answer has no Location")
    target = urljoin(url, location)
    if problem := worse(url, target):
        raise FetchError(f"{place(url)} redirects to {place(target)}, which is not followed: it {problem}")
    return target


def _retry_after(response: requests.Response) -> float:
    try:
        return min(max(0.0, float(response.headers.get("Retry-After", "0"))), LONGEST_RETRY_SECONDS)
    except ValueError:
        return 0.0


class _Credential(requests.auth.AuthBase):
    """Given even when there is none: otherwise requests would look for one in a ``.netrc``."""

    def __init__(self, credential: str) -> None:
        self._credential = credential

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._credential:
            request.headers["Authorization"] = f"Bearer {self._credential}"
        return request
