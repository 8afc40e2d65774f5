"""Addresses under ``/api/v1/``."""

from django.urls import path

from releases.api import shelf

urlpatterns = [
    path("releases/", shelf.ReleaseList.as_view(), name="release-list"),
    path("releases/upload/", shelf.ReleaseUpload.as_view(), name="release-upload"),
    path("releases/<str:sha256>/", shelf.ReleaseOne.as_view(), name="release"),
]
