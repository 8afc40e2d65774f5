"""Production starts with good settings only, and says which one is not (each start is a process of its own)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.control_plane import ROOT

GOOD = {
    "DJANGO_SETTINGS_MODULE": "fleet.settings.production",
    "FLEET_SECRET_KEY": "0123456789abcdef" * 4,
    "FLEET_ALLOWED_HOSTS": "fleet.example.com, other.example.com",
    "FLEET_DATABASE_URL": "postgres://fleet:s3cr3t@db.example.com/fleet",
    "FLEET_REDIS_URL": "redis://:s3cr3t@redis.example.com:6379/0",
}
FERNET_KEY = "only-for-tests-only-for-tests-only-for-test="
SHOW = "from django.conf import settings as s; print(s.ALLOWED_HOSTS, s.FLEET_GROUP_SOURCE, s.SESSION_COOKIE_SECURE)"


def start(code: str = SHOW, **changes: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("FLEET_", "DJANGO_"))}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env | GOOD | changes, capture_output=True, text=True, check=False
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
        ("FLEET_SECRET_KEYS", "s3cr3t", "FLEET_SECRET_KEYS: number 1 is no Fernet key; allowed: 32 random bytes"),
        ("FLEET_SECRET_KEYS", f"{FERNET_KEY},{FERNET_KEY}s3cr3t", "FLEET_SECRET_KEYS: number 2 is no Fernet key"),
        ("FLEET_STALE_SECONDS", "-1", "FLEET_STALE_SECONDS is '-1'; allowed: a number of seconds above 0"),
        ("FLEET_OFFLINE_SECONDS", "abc", "FLEET_OFFLINE_SECONDS is 'abc'; allowed: a number of seconds above 0"),
        ("FLEET_WAIT_LIMIT", "many", "FLEET_WAIT_LIMIT is 'many'; allowed: a whole number above 0"),
        ("FLEET_WAIT_LIMIT", "0", "FLEET_WAIT_LIMIT is '0'; allowed: a whole number above 0"),
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


@pytest.mark.clause("AGT-10")
def test_several_keys_for_secrets_come_in_order() -> None:
    other = FERNET_KEY.replace("tests", "trial")
    done = start(
        "from django.conf import settings as s; print(s.FLEET_SECRET_KEYS)",
        FLEET_SECRET_KEYS=f"{other}, {FERNET_KEY} ,",
    )
    assert done.stdout == f"['{other}', '{FERNET_KEY}']\n", done.stderr


@pytest.mark.clause("AGT-10")
def test_the_embedded_default_makes_its_keys_once_though_many_start_at_once(tmp_path: Path) -> None:
    show = "from django.conf import settings as s; print(s.FLEET_SECRET_KEYS, s.SECRET_KEY)"
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "fleet.settings.local", "FLEET_DATA_DIR": str(tmp_path)}
    command = [sys.executable, "-c", show]
    started = [subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    seen = {process.communicate(timeout=60)[0] for process in started}
    assert len(seen) == 1
    key = (tmp_path / "vault-key").read_text()
    assert key in seen.pop()
    for name in ("vault-key", "secret-key"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob(".*"))
