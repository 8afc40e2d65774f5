"""Addresses under ``/api/v1/``."""

from django.urls import path

from vault.api import secrets

urlpatterns = [
    path("namespaces/<str:namespace>/secrets/", secrets.SecretList.as_view(), name="secret-list"),
    path("namespaces/<str:namespace>/secrets/<str:name>/", secrets.SecretOne.as_view(), name="secret"),
]
