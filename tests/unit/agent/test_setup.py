"""``fleet-agent setup`` below a root folder of a test: what it finds, mends and leaves alone."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from agent.cli import main
from agent.config import load
from agent.facts import ARCHITECTURES
from agent.releases.description import Release
from agent.setup import command, plan, progress, release, setup, units
from agent.setup.items import Installed, Item, Link, SubIds, TextFile
from agent.setup.layout import AGENT_STATE, PODMAN_UNIT, UNITS, UPDATER_UNIT, Layout
from agent.setup.release import SetupError
from agent.store import Identity, Store
from agent.wire.messages import AttemptState
from agent.wire.updater import AGENT_UPGRADE_V1, DEFAULT_SOCKET, SYSTEM_UPGRADE_V1, Standing, UpdaterStatus

pytestmark = pytest.mark.clause("AGT-13")

_SAYS_WHO_IT_IS = """\
#!/bin/sh
echo "$(id -un) $*"
grep NoNewPrivs /proc/self/status
tty </dev/tty
env
exit 7
"""


def files(layout: Layout) -> list[Item]:
    """Things of a plan that need neither root nor accounts."""
    wishes = plan.Wishes("https://fleet.example.com", "edge-1")
    return [
        Link(layout.opt / "active", "releases/1.0.0"),
        TextFile(layout.agent_config, plan.agent_config(wishes), keeps=True),
        *(TextFile(layout.units / name, text) for name, text in units.texts(999).items()),
    ]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    for folder in ("etc/harmony-fleet", "etc/systemd/system", "opt/harmony-fleet"):
        (tmp_path / folder).mkdir(parents=True)
    return Layout(tmp_path)


def test_a_second_run_finds_nothing_to_do(layout: Layout) -> None:
    said: list[str] = []
    assert len(setup.bring_about(files(layout), print).changed) == 5
    assert setup.bring_about(files(layout), said.append).changed == []
    assert {line.split()[0] for line in said} == {"ok"}


def test_check_says_what_differs_and_changes_nothing(layout: Layout) -> None:
    said: list[str] = []
    assert len(setup.look(files(layout), said.append).changed) == 5
    assert said[0] == f"differs  link {layout.opt}/active: does not exist"
    assert [path for path in layout.root.rglob("*") if not path.is_dir()] == []


def test_what_the_operator_wrote_stays_and_a_changed_unit_is_mended(layout: Layout) -> None:
    setup.bring_about(files(layout), print)
    layout.agent_config.write_text("# mine\n")
    unit = layout.units / "harmony-fleet-agent.service"
    unit.write_text("[Service]\n")
    assert setup.bring_about(files(layout), print).changed == [f"file {unit}"]
    assert layout.agent_config.read_text() == "# mine\n"
    assert unit.read_text() == units.texts(999)[unit.name]


@pytest.mark.parametrize("keeps", [False, True])
def test_what_is_no_file_in_the_place_of_a_file_is_told_and_set_aside(layout: Layout, keeps: bool) -> None:
    path = layout.units / "harmony-fleet-agent.service"
    (path / "kept").mkdir(parents=True)
    item = TextFile(path, "[Service]\n", keeps=keeps)
    assert item.lacks() == "is no file"
    assert setup.bring_about([item], print).changed == [item.name]
    assert path.read_text() == "[Service]\n"
    assert (path.with_name(f"{path.name}.set-aside") / "kept").is_dir()


def test_a_link_to_what_root_must_not_run_is_replaced_by_the_command(layout: Layout) -> None:
    path = layout.root / "fleet-agent"
    path.symlink_to("/opt/harmony-fleet/active/fleet-agent")
    item = TextFile(path, plan.COMMAND, mode=0o755)
    assert item.lacks() == "is no file"
    item.make()
    assert item.lacks() == ""
    path.chmod(0o644)
    assert item.lacks() == "has the mode 0644, not 0755"


def test_without_an_address_a_new_device_is_told_to_give_one(layout: Layout) -> None:
    with pytest.raises(SetupError, match="does not exist; give --url"):
        setup.bring_about([TextFile(layout.agent_config, "", keeps=True)], print)


def test_the_first_configuration_is_one_that_the_agent_reads(layout: Layout) -> None:
    setup.bring_about(files(layout), print)
    config = load(layout.agent_config)
    assert (config.server.url, config.device.id) == ("https://fleet.example.com", "edge-1")


@pytest.mark.case("U5")
@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_stands_in_the_place_of_the_active_link_is_set_aside(layout: Layout, kind: str) -> None:
    active = layout.opt / "active"
    if kind == "folder":
        active.mkdir()
        (active / "kept").touch()
    else:
        active.write_text("kept")
    setup.bring_about([Link(active, "releases/1.0.0")], print)
    assert active.readlink() == Path("releases/1.0.0")
    aside = layout.opt / "active.set-aside"
    assert (aside / "kept").exists() if kind == "folder" else aside.read_text() == "kept"


def test_a_link_to_an_older_release_is_switched(layout: Layout) -> None:
    link = Link(layout.opt / "active", "releases/1.1.0")
    link.path.symlink_to("releases/1.0.0")
    assert link.lacks() == "leads to releases/1.0.0, not to releases/1.1.0"
    link.make()
    assert link.lacks() == ""


def test_ids_for_containers_of_another_user_do_not_count(layout: Layout) -> None:
    path = layout.at("/etc/subuid")
    path.write_text("somebody:100000:65536\n")
    assert SubIds(path, "--add-subuids").lacks() == "has 0 ids, and containers need 65536"
    path.write_text("somebody:100000:65536\nharmony-fleet:165536:65536\n")
    assert SubIds(path, "--add-subuids").lacks() == ""


def described(folder: Path, architecture: str) -> Release:
    (folder / "fleet-agent").write_bytes(b"program")
    about = Release("1.0.0", architecture, 0, {"fleet-agent": hashlib.sha256(b"program").hexdigest()})
    (folder / "release.json").write_bytes(msgspec.json.encode(about))
    return about


def test_a_damaged_release_is_named_by_its_file(tmp_path: Path) -> None:
    about = described(tmp_path, ARCHITECTURES.get(platform.machine(), platform.machine()))
    assert release.read(tmp_path) == about
    (tmp_path / "fleet-agent").write_bytes(b"progrom")
    with pytest.raises(SetupError, match="damaged: fleet-agent was changed; unpack it again"):
        release.read(tmp_path)


@pytest.mark.case("U7")
def test_a_release_for_another_architecture_is_refused(tmp_path: Path) -> None:
    described(tmp_path, "riscv")
    with pytest.raises(SetupError, match="this release is for riscv, and this machine is"):
        release.read(tmp_path)


@contextlib.contextmanager
def updater_that_says(path: Path, status: UpdaterStatus) -> Iterator[None]:
    """One question is answered."""
    path.parent.mkdir(parents=True)
    with socket.create_server(str(path), family=socket.AF_UNIX) as server:

        def answer() -> None:
            connection = server.accept()[0]
            with connection, connection.makefile("rb") as lines:
                lines.readline()
                connection.sendall(msgspec.json.encode(status) + b"\n")

        thread = threading.Thread(target=answer)
        thread.start()
        yield
        thread.join(10)


@pytest.mark.parametrize(
    ("state", "executor", "is_refused"),
    [
        (AttemptState.RUNNING, AGENT_UPGRADE_V1, True),
        (AttemptState.ROLLBACK_FAILED, AGENT_UPGRADE_V1, False),
        (AttemptState.RUNNING, SYSTEM_UPGRADE_V1, False),
    ],
)
def test_setup_keeps_its_hands_off_an_agent_that_is_being_upgraded(
    layout: Layout, started: list[bool], state: AttemptState, executor: str, is_refused: bool
) -> None:
    (layout.root / "run").mkdir()
    standing = Standing("1", state, step="readiness", executor=executor, version="1.4.0")
    status = UpdaterStatus("1.3.0", "boot", attempts=[standing])
    link: list[Item] = [Link(layout.opt / "active", "releases/1.0.0")]
    with (
        updater_that_says(layout.at(DEFAULT_SOCKET), status),
        pytest.raises(SetupError, match=r"being upgraded to 1.4.0 \(step readiness\); run setup again when that has")
        if is_refused
        else contextlib.nullcontext(),
    ):
        command.set_up(layout, link, None)
    assert (layout.opt / "active").is_symlink() is not is_refused


def test_another_build_of_the_same_version_is_not_taken_for_this_one(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "old").mkdir()
    about, earlier = described(tmp_path / "new", "amd64"), described(tmp_path / "old", "amd64")
    installed = Installed(tmp_path / "new", tmp_path / "old", about)
    assert installed.lacks() == ""
    (tmp_path / "old/release.json").write_bytes(msgspec.json.encode(replace(earlier, built=1)))
    assert installed.lacks() == "is another build: release.json was changed"
    installed.make()
    assert installed.lacks() == ""


def test_a_device_that_is_not_enrolled_lacks_nothing_because_of_that(layout: Layout) -> None:
    said: list[str] = []
    assert setup.units_that_can_run(layout, said.append) == (PODMAN_UNIT, UPDATER_UNIT)
    assert said == [
        "note     harmony-fleet-agent.service cannot run yet: this device is not enrolled; "
        "do that with setup --token-file FILE"
    ]
    Store(layout.at(AGENT_STATE)).save_identity(Identity("edge-1", "1", "https://fleet.example.com"), "credential")
    assert setup.units_that_can_run(layout, said.append) == UNITS


@pytest.fixture
def fleet_agent() -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """The command on the path, as root runs it; the agent is a program that says who it is."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "fleet-agent"
        program.write_text(_SAYS_WHO_IT_IS)
        program.chmod(0o755)
        program.parent.chmod(0o755)  # pytest's own are root's alone
        text = plan.COMMAND.replace("/opt/harmony-fleet/active", folder)
        text = text.replace("--reuid=harmony-fleet --regid=harmony-fleet", "--reuid=nobody --regid=nogroup")

        def run(*arguments: str) -> subprocess.CompletedProcess[str]:
            command, env = (
                ["sh", "-c", text, "fleet-agent", *arguments],
                {"PATH": os.environ["PATH"], "OF_ROOT": "secret"},
            )
            return subprocess.run(command, capture_output=True, text=True, check=False, env=env)

        yield run


@pytest.mark.root("the command gives up root's rights")
def test_root_never_runs_what_active_leads_to(fleet_agent: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = fleet_agent("status", "--json", "a b")
    assert done.returncode == 7
    lines = done.stdout.splitlines()
    assert lines[:2] == ["nobody status --json a b", "NoNewPrivs:\t1"]
    assert "/dev/tty" in done.stderr, "it has a terminal"
    assert "OF_ROOT" not in done.stdout


def test_setup_by_the_command_is_told_where_it_is_run_from(
    fleet_agent: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = fleet_agent("setup", "--check")
    assert (done.returncode, done.stdout) == (2, "")
    assert "setup is run as root, from where a release was unpacked" in done.stderr


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--url", 'https://x"\nevil', "allowed: an address like https://fleet.example.com"),
        ("--device-id", "Edge 1", "allowed: lower case letters, digits and dashes, at most 63"),
        ("--ca-file", 'a"b', "allowed: an absolute path"),
    ],
)
def test_what_would_break_the_configuration_is_refused_before_anything_is_made(
    option: str, value: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["setup", "--url", "https://fleet.example.com", "--device-id", "edge-1", option, value]) == 2
    assert sentence in capsys.readouterr().err


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the units were to be started anew, by each setup that came so far."""
    found: list[bool] = []

    def start(changed: bool, say: setup.Say) -> bool:
        found.append(changed)
        return changed

    monkeypatch.setattr(setup, "start_units", start)
    return found


@pytest.mark.parametrize("cut_off", [False, True])
def test_units_are_started_anew_although_the_setup_that_changed_them_was_cut_off(
    layout: Layout, started: list[bool], cut_off: bool
) -> None:
    (layout.root / "run").mkdir()
    broken: list[Item] = [TextFile(layout.agent_config, "", keeps=True)] if cut_off else []
    link: list[Item] = [Link(layout.opt / "active", "releases/1.0.0")]
    with pytest.raises(SetupError, match="give --url") if cut_off else contextlib.nullcontext():
        command.set_up(layout, link + broken, None)
    assert started == ([] if cut_off else [True])
    assert progress.is_unfinished(layout.at(progress.FILE)) == cut_off
    command.set_up(layout, link, None)
    command.set_up(layout, link, None)
    assert started[-2:] == [cut_off, False]


def test_of_two_setups_at_once_the_second_is_refused_and_changes_nothing(layout: Layout, started: list[bool]) -> None:
    (layout.root / "run").mkdir()
    link: list[Item] = [Link(layout.opt / "active", "releases/1.0.0")]
    with progress.alone(layout.at(progress.FILE)), pytest.raises(SetupError, match="another setup runs"):
        command.set_up(layout, link, None)
    assert (started, (layout.opt / "active").is_symlink()) == ([], False)
    assert command.set_up(layout, link, None) == command.DONE
