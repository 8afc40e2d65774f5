"""Requests to the server, and its refusals as ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import requests

from fleet.ctl.config import Config
from fleet.ctl.errors import Exit, Refused

#: Seconds to connect, and to wait for an answer.
TIMEOUTS = (5, 30)
PAGE_SIZE = 500
_CODES = {
    401: Exit.DENIED,
    403: Exit.DENIED,
    404: Exit.NOT_FOUND,
    409: Exit.CONFLICT,
    # A gateway without a server behind it, a server without its database.
    502: Exit.UNREACHABLE,
    503: Exit.UNREACHABLE,
    504: Exit.UNREACHABLE,
}


class Client:
    """One server, one user."""

    def __init__(self, config: Config) -> None:
        if not config.server.startswith(("http://", "https://")):
            found = f"found {config.server!r}" if config.server else "none is known"
            raise Refused(f"server: {found}; give --server https://… or set FLEETCTL_SERVER", Exit.USAGE)
        self.config = config
        self._session = requests.Session()
        self._session.trust_env = False  # no ~/.netrc, whose password would take the token's place
        self._session.headers["Accept"] = "application/json, application/yaml;q=0.9"
        if config.token:
            self._session.headers["Authorization"] = f"Token {config.token}"
        if config.ca_file:
            self._session.verify = config.ca_file

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        data: bytes | None = None,
        content_type: str = "",
        files: Mapping[str, Any] | None = None,
        auth: tuple[str, str] | None = None,
    ) -> Any:
        """The answer's JSON, or its text when it has another type, or None when it is empty.

        Raises:
            Refused: with the server's own words, or because there was no answer.
        """
        url = f"{self.config.server}/api/v1/{path}"
        try:
            answer = self._session.request(
                method,
                url,
                params=query,
                json=body,
                data=data,
                files=files,
                headers={"Content-Type": content_type} if content_type else None,
                auth=auth,
                timeout=TIMEOUTS,
                allow_redirects=False,  # a redirected POST would silently become a GET
            )
        except (requests.RequestException, OSError) as error:
            raise Refused(f"no answer from {self.config.server}: {_cause(error)}", Exit.UNREACHABLE) from None
        if answer.is_redirect:
            raise Refused(f"{url} is redirected to {answer.headers['Location']}; give that server", Exit.USAGE)
        if not answer.ok:
            raise _refusal(answer)
        if "json" in answer.headers.get("Content-Type", ""):
            return _json(answer)
        return answer.text or None

    def get(self, path: str, **query: Any) -> Any:
        """The object at this path."""
        return self.call("GET", path, query=query)

    def pages(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """All items of a list, page by page."""
        number, more = 1, True
        while more:
            page = self.get(path, page=number, pageSize=PAGE_SIZE, **query)
            yield from page["results"]
            number, more = number + 1, bool(page["next"])


def segment(name: str) -> str:
    """A name as one part of a path, whatever a person typed.

    Raises:
        Refused: when it is no part: empty, or a way up.
    """
    if name in ("", ".", ".."):
        raise Refused(f"{name!r} is no name", Exit.USAGE)
    return quote(name, safe="")


def _json(answer: requests.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        raise Refused(f"{answer.url} did not answer with JSON; is it a fleet's server?", Exit.UNREACHABLE) from None


def _refusal(answer: requests.Response) -> Refused:
    code = _CODES.get(answer.status_code, Exit.FAILED)
    try:
        problem = answer.json()
        message = str(problem["detail"])
        faults = [(str(each["path"]), str(each["message"])) for each in problem.get("errors", [])]
    except (ValueError, KeyError, TypeError):
        return Refused(f"{answer.url} answered {answer.status_code} {answer.reason}", code)
    if answer.status_code == requests.codes.unauthorized:
        message += "; log in with: fleetctl login"
    return Refused(message, code, faults)


def _cause(error: Exception) -> str:
    if isinstance(error, requests.exceptions.SSLError):
        return f"its certificate is not trusted ({error}); name its authority with --ca-file"
    if isinstance(error, requests.Timeout):
        return "it took too long"
    if isinstance(error, requests.ConnectionError):
        return "the connection failed; is it up, and is the address right?"
    return str(error)
