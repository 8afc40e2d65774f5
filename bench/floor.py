"""The floor of all requests: a Django project with one view that does nothing, served as ours is."""

from django.http import HttpRequest, HttpResponse
from django.urls import path


def empty(request: HttpRequest) -> HttpResponse:
    """Nothing."""
    return HttpResponse(status=204)


urlpatterns = [path("api/agent/v1/desired", empty), path("healthz", empty)]
