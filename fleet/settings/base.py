"""What all installations share. Values that differ come from environment variables; no secret has a default.

Not used by itself: ``local`` is the embedded default, ``production`` refuses to start insecurely, ``test`` is for
pytest.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.urls import reverse_lazy

from fleet.settings.environment import count, fernet_keys, seconds
from fleet.settings.theme import unfold

BASE_DIR = Path(__file__).resolve().parent.parent.parent
DATA_DIR = Path(os.environ.get("FLEET_DATA_DIR", BASE_DIR / "var"))

ROOT_URLCONF = "fleet.urls"
WSGI_APPLICATION = "fleet.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
APPEND_SLASH = True
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
USE_I18N = False

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_fsm",
    "django_filters",
    "django_celery_beat",
    "rest_framework",
    "drf_spectacular",
    "knox",
    "fleet.core",
    "fleet.targeting",
    "devices",
    "vault",
    "upgrades",
    "releases",
    "rollouts",
    "tasks",
    "fleet.kube",
    "fleet",
]

MIDDLEWARE = [
    # First, because a device's request needs none of the others (sessions, CSRF, messages).
    "devices.entrance.AgentEntrance",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = reverse_lazy("admin:login")
LOGIN_REDIRECT_URL = reverse_lazy("admin:index")

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "static"
# Archives of releases.
MEDIA_ROOT: Path | str = os.environ.get("FLEET_FILES_DIR") or DATA_DIR / "files"
STATICFILES_DIRS: list[Path] = []
WHITENOISE_USE_FINDERS = True

DEFAULT_EXCEPTION_REPORTER_FILTER = "fleet.core.error_pages.Discreet"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "knox.auth.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["fleet.core.permissions.ModelPermissions"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["fleet.core.parsers.JsonObject"],
    "DEFAULT_PAGINATION_CLASS": "fleet.core.pagination.Pages",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_VERSIONING_CLASS": "rest_framework.versioning.URLPathVersioning",
    "DEFAULT_VERSION": "v1",
    "ALLOWED_VERSIONS": ["v1"],
    "EXCEPTION_HANDLER": "fleet.core.problems.exception_handler",
    "PAGE_SIZE": 50,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
REST_KNOX = {"TOKEN_TTL": timedelta(days=90), "TOKEN_LIMIT_PER_USER": 20, "AUTO_REFRESH": False}
SPECTACULAR_SETTINGS = {
    "TITLE": "Harmony Fleet",
    "DESCRIPTION": "Rollouts to edge devices, proven on the device.",
    "VERSION": "v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "OAS_VERSION": "3.1.1",
    "ENUM_NAME_OVERRIDES": {
        "DeploymentPhase": "rollouts.api.forms.PHASES",
        "RevisionPhase": "rollouts.models.Phase",
        "Connectivity": "devices.models.Connectivity",
        "TaskPhase": "tasks.models.Phase",
        "TargetState": "fleet.targeting.models.TargetState",
    },
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "fleet.core.openapi.complete",
    ],
}

UNFOLD = unfold()

# The fleet -----------------------------------------------------------------------------------------------------------

#: Dotted path of the group source (DEP-7). None: nothing matches, because nobody has said who is in a group.
FLEET_GROUP_SOURCE = os.environ.get("FLEET_GROUP_SOURCE") or None
#: The cluster whose objects are ours too (K8S-2): a kubeconfig's path, or "in-cluster"; None: there is none.
FLEET_KUBECONFIG = os.environ.get("FLEET_KUBECONFIG") or None
#: Fernet keys that encrypt secrets (AGT-10), the newest first. None: the vault is closed.
FLEET_SECRET_KEYS = fernet_keys("FLEET_SECRET_KEYS")
#: Seconds after its last report at which a device is stale, then offline (DEV-5).
FLEET_STALE_SECONDS = int(seconds("FLEET_STALE_SECONDS", 90))
FLEET_OFFLINE_SECONDS = int(seconds("FLEET_OFFLINE_SECONDS", 300))
if FLEET_OFFLINE_SECONDS <= FLEET_STALE_SECONDS:
    raise ImproperlyConfigured(
        f"FLEET_OFFLINE_SECONDS is {FLEET_OFFLINE_SECONDS}; "
        f"needed: more than FLEET_STALE_SECONDS, which is {FLEET_STALE_SECONDS}"
    )
#: Seconds between the periodic jobs; a bell (enqueue after commit) makes most of them run sooner.
FLEET_DRAIN_SECONDS = seconds("FLEET_DRAIN_SECONDS", 0.5)
FLEET_SWEEP_SECONDS = seconds("FLEET_SWEEP_SECONDS", 5)
#: How many devices one waiting process holds, and seconds between its looks for changes where no Redis tells it.
FLEET_WAIT_LIMIT = count("FLEET_WAIT_LIMIT", 10_000)
FLEET_LOOK_SECONDS = seconds("FLEET_LOOK_SECONDS", 1)

CELERY_TASK_IGNORE_RESULT = True
CELERY_RESULT_EXPIRES = None
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_TIME_LIMIT = 300
CELERY_TASK_SOFT_TIME_LIMIT = 240
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # workers and beat wait for their broker as long as it takes
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "fleet.beat:Scheduler"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "fleet.core.logs.LineFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": os.environ.get("FLEET_LOG_LEVEL", "INFO")},
    # Periodic jobs run several times a second, and each run is worth two lines to Celery.
    "loggers": {
        name: {"level": os.environ.get("FLEET_JOB_LOG_LEVEL", "WARNING")}
        for name in ("celery.app.trace", "celery.beat", "celery.worker.strategy")
    },
}
