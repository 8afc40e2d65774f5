"""Podman through its API socket, with the ``podman`` client's transport (AGT-11); the CLI is never called.

The client's models are not used: their status raises on listed containers, their pull hides failures and a label
filter given as a list matches nothing. The API below is Podman's own, and all it returns becomes plain data here.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import requests
from podman.api.client import APIClient, APIResponse

from agent.runtime.base import (
    Container,
    ContainerSpec,
    Image,
    ImageUnavailable,
    Login,
    LoginRefused,
    LogTail,
    RuntimeFailure,
    RuntimeUnreachable,
    State,
)
from agent.runtime.log_tail import log_frames, tail
from agent.runtime.podman_data import (
    creation,
    image,
    inspected,
    listed,
    listed_image,
    login_header,
    wants_login,
    without_tag,
)

CALL_SECONDS = 30.0
LOG_LINES = 5
MAX_LOG_BYTES = 16_384
_NOT_FOUND = 404
_USUAL_FIRST_FREE_PORT = 1024
_PART_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class _Peer:
    """Who serves a socket; ``pid`` is 0 when its process ids mean nothing here: the socket was lent to a container."""

    pid: int
    uid: int


_NOBODY = _Peer(0, 0)


class PodmanRuntime:
    """One Podman service. ``pull_seconds`` is how long a pull may be silent: large layers come without a word.

    ``log_bytes``: containers that are created from now on begin their log anew when it is as large; 0 is no limit.
    """

    def __init__(
        self,
        socket: str,
        *,
        call_seconds: float = CALL_SECONDS,
        pull_seconds: float = 1800.0,
        log_bytes: int = 0,
    ) -> None:
        self._log_bytes = log_bytes
        self._url = socket if "://" in socket else f"unix://{socket}"
        self._call_seconds = call_seconds
        self._pull_seconds = pull_seconds
        self._local = threading.local()
        self._served_by: _Peer | None = None

    def version(self) -> str:
        return str(self._json("GET", "/version").get("Version", ""))

    def lowest_port(self) -> int:
        peer = self._peer()
        return 1 if peer.uid == 0 or not peer.pid else _first_free_for_all()

    def containers(self) -> list[Container]:
        found = self._json("GET", "/containers/json", params={"all": "true", "external": "true"})
        return [listed(entry, self._is_gone) for entry in found or []]

    def inspect(self, container_id: str) -> Container | None:
        response = self._call("GET", f"/containers/{container_id}/json", accept=_NOT_FOUND)
        if response.status_code == _NOT_FOUND:
            return None
        container = inspected(response.json(), self._is_gone)
        if container.restarts and container.state is State.RUNNING:
            container = replace(container, exit_code=self._last_exit_code(container_id))
        return replace(container, log=self._log(container_id)) if container.exit_code else container

    def image(self, reference: str) -> Image | None:
        response = self._call("GET", f"/images/{reference}/json", accept=_NOT_FOUND)
        return None if response.status_code == _NOT_FOUND else image(response.json(), reference)

    def images(self) -> list[Image]:
        return [listed_image(entry) for entry in self._json("GET", "/images/json") or []]

    def probe(self, reference: str, login: Login | None = None) -> None:
        """With a login, a refusal proves nothing: Podman 4.3 asks this question without it. Then the pull will tell."""
        try:
            self._call("GET", f"/manifests/{without_tag(reference)}/json", headers=login_header(login))
        except RuntimeUnreachable:
            raise
        except RuntimeFailure as error:
            if login is None or not wants_login(str(error)):
                raise _unavailable(reference, str(error)) from None

    def pull(self, reference: str, login: Login | None = None) -> Image:
        wanted = without_tag(reference)
        error = self._pull_error(wanted, login)
        if error:
            raise _unavailable(reference, error)
        pulled = self.image(wanted)
        if pulled is None:
            raise ImageUnavailable(f"image {reference}: Podman pulled it but does not have it")
        return pulled

    def remove_image(self, image_id: str) -> None:
        """Name by name, never by force: forced, Podman would remove the containers with it."""
        if any(container.image_id == image_id for container in self.containers()):
            raise RuntimeFailure(f"image {image_id} is used by a container")
        found = next((image for image in self.images() if image.id == image_id), None)
        for name in found.names[1:] if found else ():
            self._call("DELETE", f"/images/{name}", accept=_NOT_FOUND)
        self._call("DELETE", f"/images/{image_id}", accept=_NOT_FOUND)

    def logs(self, container_id: str, lines: int, limit: int) -> LogTail:
        """A log driver that hangs, or that never comes to an end, is given up after the time of a call."""
        parameters = {"stdout": "true", "stderr": "true", "tail": str(lines)}
        end = time.monotonic() + self._call_seconds
        response = self._call("GET", f"/containers/{container_id}/logs", params=parameters, stream=True)
        with contextlib.closing(response):
            return tail(log_frames(self._parts(response, end)), lines, limit)

    def create(self, spec: ContainerSpec) -> str:
        return str(self._json("POST", "/containers/create", body=creation(spec, self._log_bytes))["Id"])

    def start(self, container_id: str) -> None:
        self._call("POST", f"/containers/{container_id}/start")

    def unpause(self, container_id: str) -> None:
        self._call("POST", f"/containers/{container_id}/unpause")

    def stop(self, container_id: str, seconds: int) -> None:
        self._call(
            "POST",
            f"/containers/{container_id}/stop",
            params={"timeout": str(seconds)},
            accept=_NOT_FOUND,
            seconds=seconds + self._call_seconds,
        )

    def remove(self, container_id: str) -> None:
        self._call("DELETE", f"/containers/{container_id}", params={"force": "true", "v": "true"}, accept=_NOT_FOUND)

    def _is_gone(self, pid: int) -> bool:
        return bool(self._peer().pid) and _is_gone(pid)

    def _peer(self) -> _Peer:
        """Asked for once: whoever serves a socket goes on doing so."""
        if self._served_by is None:
            self._served_by = _peer(self._url.removeprefix("unix://"))
        return self._served_by or _NOBODY

    # Transport -----------------------------------------------------------------------------------------------------

    def _client(self) -> APIClient:
        """One per thread: a requests session is not made to be shared."""
        client: APIClient | None = getattr(self._local, "client", None)
        if client is None:
            client = self._local.client = APIClient(base_url=self._url, timeout=self._call_seconds)
        return client

    def _call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        accept: int = 0,
        seconds: float | None = None,
        stream: bool = False,
    ) -> APIResponse:
        """One request; an error status other than ``accept`` is a failure with Podman's message."""
        limit = seconds or self._call_seconds
        try:
            response = self._client()._request(
                method,
                path,
                data=None if body is None else json.dumps(body),
                params=params,
                headers={"Content-Type": "application/json", **(headers or {})},
                timeout=limit,
                stream=stream,
            )
        except (requests.RequestException, OSError) as error:
            if isinstance(error.__cause__ or error, requests.Timeout):  # the client wraps it
                raise RuntimeUnreachable(f"Podman did not answer {method} {path} within {limit:g} s") from None
            raise RuntimeUnreachable(f"Podman cannot be reached at {self._url}: {_root_cause(error)}") from None
        if response.status_code >= 400 and response.status_code != accept:
            raise RuntimeFailure(_message(response))
        return response

    def _json(self, method: str, path: str, **options: Any) -> Any:
        response = self._call(method, path, **options)
        try:
            return response.json()
        except ValueError:
            raise RuntimeFailure(f"Podman answered {method} {path} with something that is not JSON") from None

    def _pull_error(self, reference: str, login: Login | None) -> str:
        """Pull and read the stream to its end: Podman answers 200 before it knows whether it can."""
        response = self._call(
            "POST",
            "/images/pull",
            params={"reference": reference, "policy": "always"},
            headers=login_header(login),
            seconds=self._pull_seconds,
            stream=True,
        )
        try:
            with contextlib.closing(response):
                said = [json.loads(line) for line in response.iter_lines() if line]
        except (requests.RequestException, ValueError) as error:
            raise RuntimeUnreachable(f"Podman broke off the pull of {reference}: {_root_cause(error)}") from None
        return next((str(line["error"]) for line in said if line.get("error")), "")

    def _parts(self, response: APIResponse, end: float) -> Iterator[bytes]:
        try:
            for part in response.iter_content(_PART_BYTES):
                yield part
                if time.monotonic() > end:
                    raise RuntimeUnreachable(f"Podman did not send the log within {self._call_seconds:g} s")
        except (requests.RequestException, OSError) as error:
            raise RuntimeUnreachable(f"Podman broke off the log: {_root_cause(error)}") from None

    def _log(self, container_id: str) -> str:
        try:
            return self.logs(container_id, LOG_LINES, MAX_LOG_BYTES).text
        except RuntimeFailure:
            return ""  # a log driver that keeps nothing must not hide the state

    def _last_exit_code(self, container_id: str) -> int:
        """Of the last run that ended: a container that was restarted shows 0 by itself."""
        filters = json.dumps({"container": [container_id], "event": ["died"]})
        try:
            response = self._call("GET", "/events", params={"stream": "false", "filters": filters})
            ended = [json.loads(line) for line in response.text.splitlines() if line]
            return int(ended[-1]["Actor"]["Attributes"]["containerExitCode"]) if ended else 0
        except (RuntimeFailure, ValueError, KeyError, TypeError):
            return 0


def _unavailable(reference: str, said: str) -> ImageUnavailable:
    return (LoginRefused if wants_login(said) else ImageUnavailable)(f"image {reference}: {said}")


def _root_cause(error: BaseException) -> str:
    """The system's own words instead of the wrapping of four libraries."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.strerror:
            return seen.strerror
        inner = seen.args[0] if seen.args and isinstance(seen.args[0], BaseException) else None
        seen = inner or getattr(seen, "reason", None) or seen.__cause__ or seen.__context__
        if not isinstance(seen, BaseException):
            break
    found = re.search(r"\[Errno \d+\] ([^')]+)", str(error))
    return found[1] if found else type(error).__name__


def _message(response: APIResponse) -> str:
    try:
        return str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"Podman answered {response.status_code}"


def _is_gone(pid: int) -> bool:
    """Whether a process is dead for certain; a signal of 0 asks without needing the right to look into ``/proc``."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False


def _peer(path: str) -> _Peer | None:
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    except OSError:
        return None
    pid, uid, _ = struct.unpack("3i", credentials)
    return _Peer(pid, uid)


def _first_free_for_all() -> int:
    """The kernel's setting, which an administrator may have lowered."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
    except (OSError, ValueError):
        return _USUAL_FIRST_FREE_PORT
