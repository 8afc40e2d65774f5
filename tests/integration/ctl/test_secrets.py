"""``fleetctl secret``: values go in from files and pipes, and nothing prints one."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.integration.ctl.cli import Fleetctl
from tests.integration.rollouts.world import World
from tests.integration.vault.kit import Vault
from vault.models import Secret
from vault.selectors import Reference, registry_logins, values_of

pytestmark = pytest.mark.clause("AGT-10", "API-2")


def value(key: str, name: str = "db", namespace: str = "default") -> str | None:
    return values_of(namespace, {Reference(name, key)}).get(Reference(name, key))


def test_values_come_from_files_and_standard_input(fleetctl: Fleetctl, world: World, tmp_path: Path) -> None:
    (tmp_path / "cert").write_bytes("-----ä\r\nx\n".encode())
    done = fleetctl("secret", "set", "db", f"tls.crt=@{tmp_path}/cert", "password=-", stdin="hunter2 \n")
    assert done.stdout == "secret default/db has the keys password, tls.crt\n"
    assert done.stderr == f"tls.crt: {tmp_path}/cert ends with a line break, which is now the end of the value\n"
    assert (value("password"), value("tls.crt")) == ("hunter2 ", "-----ä\r\nx\n")
    assert fleetctl("secret", "set", "shop/db", "user=-", "-n", "other", stdin="").code == 0
    assert value("user", namespace="shop") == ""
    assert fleetctl("secret", "set", "db", "user=-", "tls.crt-", stdin="api").lines == [
        "secret default/db has the keys password, user"
    ]
    assert fleetctl("secret", "set", "db", "only=-", "--replace", stdin="x").lines == [
        "secret default/db has the keys only"
    ]


def test_a_value_on_the_command_line_is_refused_and_not_repeated(fleetctl: Fleetctl, world: World) -> None:
    done = fleetctl("secret", "set", "db", "password=s3cr3t")
    assert done.code == 2
    assert done.stderr.startswith("fleetctl: password: a value on the command line stays in the shell's history")
    assert "s3cr3t" not in done.stdout + done.stderr
    assert not Secret.objects.exists()


def test_what_the_server_refuses_has_its_words_and_no_value(fleetctl: Fleetctl, world: World) -> None:
    done = fleetctl("secret", "set", "db", "password=-", stdin="s3cr3t\x00")
    assert done.code == 1
    assert done.stderr.startswith("fleetctl: values.password: contains a NUL character")
    assert "s3cr3t" not in done.stderr


def test_secrets_are_listed_described_and_deleted_with_who_needs_them(fleetctl: Fleetctl, world: World) -> None:
    world.device("edge-1")
    world.rollout(Vault().manifest("api", "db/password"))
    done = fleetctl("secret", "set", "db", "password=-", stdin="hunter2")
    assert done.lines[1].startswith("default/api: containers that run keep the values that they have until: fleetctl r")
    listed = fleetctl("secret", "list")
    assert listed.lines[1].split() == ["default", "db", "password", "-", "2026-12-01", "14:00:00", "UTC", "ada"]
    assert fleetctl("secret", "list", "-n", "shop").stderr == "nothing found\n"
    described = fleetctl("secret", "describe", "db")
    assert described.lines[0] == "Name:       default/db"
    assert described.lines[-1] == "Needed by:  default/api"
    whole = fleetctl("secret", "describe", "default/db", "-o", "yaml").stdout
    assert yaml.safe_load(whole)["keys"] == ["password"]
    assert "hunter2" not in listed.stdout + described.stdout + whole
    done = fleetctl("secret", "delete", "db")
    assert done.stdout == "secret default/db deleted\n"
    assert "still needed by default/api" in done.stderr
    assert fleetctl("secret", "delete", "db").code == 3


@pytest.mark.clause("AGT-15")
def test_the_login_for_a_registry_is_kept(fleetctl: Fleetctl, world: World) -> None:
    arguments = ("secret", "set-registry", "pull", "R.example.com:5000", "--username", "puller", "--password-stdin")
    done = fleetctl(*arguments, stdin="letmepull\n")
    assert done.stdout == "secret default/pull is the login for r.example.com:5000\n"
    assert registry_logins("default", {"r.example.com:5000"}) == {"r.example.com:5000": ("puller", "letmepull")}
