"""HTTP without a network: what ``requests`` sends is answered by Django in the same thread and transaction."""

from __future__ import annotations

import io
from typing import Any
from urllib.parse import urlsplit

import requests
from django.test import Client
from requests.adapters import BaseAdapter

URL = "http://in-process"


class _Django(BaseAdapter):
    def __init__(self) -> None:
        super().__init__()
        self._client = Client()

    def send(self, request: requests.PreparedRequest, *arguments: Any, **options: Any) -> requests.Response:
        parts = urlsplit(str(request.url))
        body = request.body or b""
        answer = self._client.generic(
            str(request.method),
            parts.path,
            body.encode() if isinstance(body, str) else body,
            content_type=request.headers.get("Content-Type", ""),
            headers=dict(request.headers),
            QUERY_STRING=parts.query,
        )
        response = requests.Response()
        response.status_code = answer.status_code
        response.headers.update(answer.headers)
        response.raw = io.BytesIO(answer.content)
        response.url, response.request = str(request.url), request
        return response

    def close(self) -> None:
        """Nothing is open."""


def session() -> requests.Session:
    """A session whose requests to :data:`URL` are answered by this process."""
    made = requests.Session()
    made.trust_env = False
    made.mount(URL, _Django())
    return made
