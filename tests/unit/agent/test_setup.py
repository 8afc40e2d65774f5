"""``fleet-agent setup`` below a root folder of a test: what it finds, mends and leaves alone."""

from __future__ import annotations

import contextlib
import hashlib
import platform
from pathlib import Path

import msgspec
import pytest

from agent.cli import main
from agent.config import load
from agent.facts import ARCHITECTURES
from agent.releases.description import Release
from agent.setup import command, plan, progress, release, setup, units
from agent.setup.items import Item, Link, SubIds, TextFile
from agent.setup.layout import Layout
from agent.setup.release import SetupError

pytestmark = pytest.mark.clause("AGT-13")


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
