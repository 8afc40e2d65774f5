"""Where each entrance is."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView

from fleet.core import api as core_api
from fleet.core import health, login, rest

api: list[URLPattern | URLResolver] = [
    path("", include("devices.api_urls")),
    path("", include("vault.api_urls")),
    path("", include("rollouts.api_urls")),
    path("", include("tasks.api_urls")),
    path("", include("upgrades.api_urls")),
    path("", include("releases.api_urls")),
    path("events/", core_api.EventList.as_view(), name="event-list"),
    path("auth/login/", login.Login.as_view(), name="login"),
    path("auth/logout/", login.Logout.as_view(), name="logout"),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    re_path("", rest.NoSuchAddress.as_view()),
]

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    path("api/agent/v1/", include("devices.agent_urls")),
    path("api/agent/v1/", include("rollouts.agent_urls")),
    path("api/agent/v1/", include("upgrades.agent_urls")),
    path("api/agent/v1/", include("releases.agent_urls")),
    re_path(r"^api/(?P<version>v1)/", include(api)),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
]
