"""Reading pages as a person does: their words, their buttons, their addresses."""

from __future__ import annotations

import html
import re
from typing import Any

from django.http import HttpResponse
from django.urls import reverse

_HIDDEN = re.compile(r"<(script|style|template)\b.*?</\1>|<!--.*?-->", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")


def words(response: HttpResponse) -> str:
    """The visible text of a page, with single spaces."""
    text = _TAG.sub(" ", _HIDDEN.sub(" ", response.content.decode()))
    return re.sub(r"\s+", " ", html.unescape(text)).replace(" ,", ",").replace(" .", ".")


def buttons(response: HttpResponse) -> set[str]:
    """The operations that a page offers."""
    return set(re.findall(r'data-operation="([a-z-]+)"', response.content.decode()))


def rows(response: HttpResponse) -> list[str]:
    """The text of each row of a list."""
    found = re.findall(r'<tr class="data-row.*?</tr>', response.content.decode(), re.DOTALL)
    return [re.sub(r"\s+", " ", html.unescape(_TAG.sub(" ", row))).strip() for row in found]


def at(view: str, *args: Any) -> str:
    """The address of an admin page."""
    return reverse(f"admin:{view}", args=args)
