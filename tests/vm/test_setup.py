"""``fleet-agent setup`` on a Debian that nobody has set up: made, made again, checked, mended, upgraded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.setup.layout import AGENT_STATE, PODMAN_SOCKET, UNITS, USER
from agent.store import Identity, Store
from harness.vm.device import RELEASE, unpack
from harness.vm.nspawn import Machine
from harness.vm.tree import Recipe, tree
from tests.support.needs import need, need_root

pytestmark = pytest.mark.clause("AGT-13")
#: Both programs, and with them what only a device would come to load.
COMMANDS = (("fleet-agent", "version"), ("fleet-updater", "version"), ("fleet-agent", "--help"))


@pytest.fixture(params=["bookworm", "trixie"])
def bare_machine(request: pytest.FixtureRequest, archive: Path, tmp_path: Path) -> Iterator[Machine]:
    need_root("systemd-nspawn and debootstrap")
    need("systemd-nspawn", "debootstrap")
    with Machine([tree(Recipe(suite=request.param))], tmp_path) as machine:
        unpack(archive, machine)
        machine.start()
        yield machine


def setup(machine: Machine, *options: str) -> tuple[int, str]:
    done = machine.run(f"{RELEASE}/fleet-agent", "setup", *options, check=False, seconds=120)
    return done.returncode, done.stdout + done.stderr


def test_a_bare_debian_becomes_a_device_as_often_as_one_likes(bare_machine: Machine) -> None:
    machine = bare_machine
    for program, *arguments in COMMANDS:
        machine.run(f"{RELEASE}/{program}", *arguments)
    code, said = setup(machine, "--check")
    assert code == 1, said
    assert f"differs  user {USER}: does not exist" in said
    assert not machine.inside("/opt/harmony-fleet").exists(), "--check has made something"

    code, said = setup(machine, "--url", "http://127.0.0.1:9", "--device-id", "edge-1")
    assert code == 0, said
    code, said = setup(machine, "--check")
    assert code == 0, said
    assert "this device is not enrolled" in said
    _root_gives_up_its_rights(machine)
    _enrol(machine)
    assert setup(machine)[0] == 0
    _everything_runs(machine)
    for options in ((), ("--check",)):
        code, said = setup(machine, *options)
        assert code == 0, said
        assert said.splitlines()[-1] == ("nothing differs" if options else "nothing had to be done")

    _damage(machine)
    code, said = setup(machine, "--check")
    assert code == 1
    assert "fleet-agent was changed" in said
    assert "link /opt/harmony-fleet/active: is no link" in said
    assert setup(machine)[0] == 0
    assert setup(machine, "--check")[0] == 0

    _rename_release(machine, "0.2.0")
    code, said = setup(machine)
    assert code == 0, said
    assert machine.run("readlink", "/opt/harmony-fleet/active").stdout.strip() == "releases/0.2.0"
    assert 'id = "edge-1"' in machine.run("cat", "/etc/harmony-fleet/agent.toml").stdout
    _everything_runs(machine)


def _everything_runs(machine: Machine) -> None:
    for unit in UNITS:
        assert machine.run("systemctl", "is-enabled", unit).stdout.strip() == "enabled"
        assert machine.run("systemctl", "is-active", unit).stdout.strip() == "active"
    as_agent = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups", "--")
    machine.run(*as_agent, "podman", "--remote", "--url", f"unix://{PODMAN_SOCKET}", "version")


def _enrol(machine: Machine) -> None:
    """As if a control plane had been there: an agent that has no credential ends at once."""
    Store(machine.inside(AGENT_STATE)).save_identity(Identity("edge-1", "1", "http://127.0.0.1:9"), "credential")
    machine.run("chown", "--recursive", f"{USER}:{USER}", AGENT_STATE)


def _root_gives_up_its_rights(machine: Machine) -> None:
    """The command on the path runs the active release as the agent's user, and does not set up."""
    machine.run("fleet-agent", "version")
    done = machine.run("fleet-agent", "enroll", "--token-file", "/root/token", check=False)
    assert "/root/token: Permission denied" in done.stderr
    done = machine.run("fleet-agent", "setup", "--check", check=False)
    assert done.returncode == 2
    assert "from where a release was unpacked" in done.stderr


def _damage(machine: Machine) -> None:
    """A program is empty, and where the link was stands a folder (U5)."""
    script = "cd /opt/harmony-fleet/releases/* && rm fleet-agent && touch fleet-agent"
    script += " && cd /opt/harmony-fleet && rm active && mkdir active"
    machine.run("sh", "-c", script)


def _rename_release(machine: Machine, version: str) -> None:
    """The unpacked release as its successor."""
    path = machine.root / RELEASE.lstrip("/") / "release.json"
    about = json.loads(path.read_text()) | {"version": version}
    path.unlink()
    path.write_text(json.dumps(about))
