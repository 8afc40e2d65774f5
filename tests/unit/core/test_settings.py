"""Production starts with good settings only, and says which one is not (each start is a process of its own)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from harness.control_plane import ROOT

GOOD = {
    "DJANGO_SETTINGS_MODULE": "fleet.settings.production",
    "FLEET_SECRET_KEY": "0123456789abcdef" * 4,
    "FLEET_ALLOWED_HOSTS": "fleet.example.com, other.example.com",
    "FLEET_DATABASE_URL": "postgres://fleet:s3cr3t@db.example.com/fleet",
    "FLEET_REDIS_URL": "redis://:s3cr3t@redis.example.com:6379/0",
}
SHOW = "from django.conf import settings as s; print(s.ALLOWED_HOSTS, s.FLEET_GROUP_SOURCE, s.SESSION_COOKIE_SECURE)"


def start(**changes: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("FLEET_", "DJANGO_"))}
    return subprocess.run(
        [sys.executable, "-c", SHOW], cwd=ROOT, env=env | GOOD | changes, capture_output=True, text=True, check=False
    )


@pytest.mark.clause("DEP-7")
def test_good_settings_start_without_a_group_source() -> None:
    done = start()
    assert done.stdout == "['fleet.example.com', 'other.example.com'] None True\n", done.stderr


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("FLEET_SECRET_KEY", "", "FLEET_SECRET_KEY is not set; needed: a random text"),
        ("FLEET_SECRET_KEY", "short", "FLEET_SECRET_KEY has 5 characters; needed: at least 50"),
        ("FLEET_SECRET_KEY", "a" * 60, "FLEET_SECRET_KEY has 1 different characters; needed: a random text"),
        ("FLEET_ALLOWED_HOSTS", "", "FLEET_ALLOWED_HOSTS is not set"),
        ("FLEET_ALLOWED_HOSTS", " , ", "FLEET_ALLOWED_HOSTS names no host"),
        ("FLEET_ALLOWED_HOSTS", "fleet.example.com,*", "FLEET_ALLOWED_HOSTS contains *"),
        ("FLEET_DATABASE_URL", "", "FLEET_DATABASE_URL is not set"),
        (
            "FLEET_DATABASE_URL",
            "sqlite:///s3cr3t",
            "FLEET_DATABASE_URL is no address of this kind; allowed: postgres://",
        ),
        ("FLEET_DATABASE_URL", "s3cr3t", "FLEET_DATABASE_URL is no address of this kind"),
        ("FLEET_REDIS_URL", "", "FLEET_REDIS_URL is not set"),
        ("FLEET_REDIS_URL", "file:///s3cr3t", "FLEET_REDIS_URL is no address of this kind; allowed: redis://"),
        ("FLEET_STALE_SECONDS", "-1", "FLEET_STALE_SECONDS is '-1'; allowed: a number of seconds above 0"),
        ("FLEET_OFFLINE_SECONDS", "abc", "FLEET_OFFLINE_SECONDS is 'abc'; allowed: a number of seconds above 0"),
        ("FLEET_DRAIN_SECONDS", "0", "FLEET_DRAIN_SECONDS is '0'; allowed: a number of seconds above 0"),
        (
            "FLEET_OFFLINE_SECONDS",
            "10",
            "FLEET_OFFLINE_SECONDS is 10; needed: more than FLEET_STALE_SECONDS, which is 90",
        ),
    ],
)
def test_a_bad_setting_stops_the_start_by_its_name_and_tells_no_secret(name: str, value: str, words: str) -> None:
    done = start(**{name: value})
    assert done.returncode != 0
    assert f"ImproperlyConfigured: {words}" in done.stderr
    assert "s3cr3t" not in done.stderr
