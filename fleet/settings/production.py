"""Production: everything that matters is said by environment variables, and what is missing stops the start.

No group source is configured (DEP-7): until ``FLEET_GROUP_SOURCE`` names one, no device matches anything.
"""

from __future__ import annotations

import os

from django.core.exceptions import ImproperlyConfigured

from fleet.settings.base import *
from fleet.settings.base import DATA_DIR
from fleet.settings.databases import broker, database
from fleet.settings.environment import hosts, required, url

SHORTEST_SECRET_KEY = 50
#: As Django's own deployment check wants it.
FEWEST_DIFFERENT = 5


DEBUG = False
SECRET_KEY = required("FLEET_SECRET_KEY", f"a random text of at least {SHORTEST_SECRET_KEY} characters")
if len(SECRET_KEY) < SHORTEST_SECRET_KEY:
    raise ImproperlyConfigured(
        f"FLEET_SECRET_KEY has {len(SECRET_KEY)} characters; needed: at least {SHORTEST_SECRET_KEY}"
    )
if len(set(SECRET_KEY)) < FEWEST_DIFFERENT:
    raise ImproperlyConfigured(
        f"FLEET_SECRET_KEY has {len(set(SECRET_KEY))} different characters; needed: a random text"
    )
ALLOWED_HOSTS = hosts(required("FLEET_ALLOWED_HOSTS", "the host names of this control plane, with commas"))
if not ALLOWED_HOSTS:
    raise ImproperlyConfigured("FLEET_ALLOWED_HOSTS names no host; needed: the host names of this control plane")
if "*" in ALLOWED_HOSTS:
    raise ImproperlyConfigured("FLEET_ALLOWED_HOSTS contains *; needed: the host names of this control plane")
CSRF_TRUSTED_ORIGINS = [f"https://{host.lstrip('.')}" for host in ALLOWED_HOSTS]

url("FLEET_DATABASE_URL", ("postgres", "postgresql"), "postgres://user:password@host/name")
url("FLEET_REDIS_URL", ("redis", "rediss"), "redis://:password@host:6379/0")
DATABASES = {"default": database(DATA_DIR)}
CELERY_BROKER_URL, CELERY_BROKER_TRANSPORT_OPTIONS = broker(DATA_DIR)

# Several web servers have to share it, so there is no default: without it the shelf takes no archives.
MEDIA_ROOT = os.environ.get("FLEET_FILES_DIR", "")

# TLS ends at a proxy in front of us, which must set this header itself.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_SSL_REDIRECT = True
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_HSTS_SECONDS = 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
SECURE_HSTS_PRELOAD = True
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
