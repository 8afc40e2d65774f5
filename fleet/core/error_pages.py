"""What error pages (FLEET_DEBUG=1) and error mails show of variables."""

from __future__ import annotations

from types import FrameType
from typing import Any

from django.http import HttpRequest
from django.views.debug import SafeExceptionReporterFilter


class Discreet(SafeExceptionReporterFilter):
    """Hides what views mark as sensitive, with DEBUG too: a secret on a page stays in a browser's memory and history.

    Of a request whose parameters are sensitive no variable is shown at all: frames of libraries hold copies.
    """

    def is_active(self, request: HttpRequest | None) -> bool:
        return True

    def get_traceback_frame_variables(self, request: Any, tb_frame: FrameType) -> Any:
        if getattr(request, "sensitive_post_parameters", None):
            return []
        return super().get_traceback_frame_variables(request, tb_frame)
