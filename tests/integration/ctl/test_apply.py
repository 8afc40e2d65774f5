"""``fleetctl apply``: all that is wrong, a line each, in the server's words."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rollouts.models import Deployment
from tests.integration.api.rest import Rest, database
from tests.integration.api.test_manifests import BAD
from tests.integration.ctl.cli import Fleetctl
from tests.integration.rollouts.world import World

pytestmark = pytest.mark.clause("API-2")


def written(folder: Path, name: str, *manifests: object) -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump_all(manifests))
    return path


def test_a_file_is_applied(fleetctl: Fleetctl, world: World, tmp_path: Path) -> None:
    file = written(tmp_path, "api.yaml", world.manifest())
    done = fleetctl("apply", "-f", str(file))
    assert (done.code, done.stdout) == (0, "deployment default/api created: generation 1\n")
    done = fleetctl("apply", "-f", str(file))
    assert done.stdout == "deployment default/api unchanged: generation 1 has this spec already\n"


def test_standard_input_is_applied(fleetctl: Fleetctl, world: World) -> None:
    done = fleetctl("apply", "-f", "-", stdin=yaml.safe_dump(world.manifest()))
    assert (done.code, Deployment.objects.count()) == (0, 1)


def test_a_dry_run_changes_nothing(fleetctl: Fleetctl, world: World) -> None:
    done = fleetctl("apply", "-f", "-", "--dry-run", stdin=yaml.safe_dump(world.manifest()))
    assert "created" in done.stdout
    assert "dry run" in done.stdout
    assert not Deployment.objects.exists()


def test_of_a_folder_every_manifest_is_tried(fleetctl: Fleetctl, world: World, tmp_path: Path) -> None:
    bad = written(tmp_path, "a.yaml", {**world.manifest("a"), "kind": "Pod"})
    written(tmp_path, "b.yml", world.manifest("b"))
    written(tmp_path, "c.json", world.manifest("c"))
    (tmp_path / "README.md").write_text("no manifest")
    done = fleetctl("apply", "-f", str(tmp_path))
    assert done.code == 1
    kinds = "Deployment, TaskRun, TaskSchedule, Device, AgentRelease"
    assert done.stderr == f'{bad}: kind: found "Pod"; allowed: {kinds}\n'
    assert sorted(Deployment.objects.values_list("name", flat=True)) == ["b", "c"]


@pytest.mark.parametrize("what", ["missing.yaml", "empty"])
def test_nothing_to_apply_is_a_wrong_command_line(fleetctl: Fleetctl, tmp_path: Path, what: str) -> None:
    (tmp_path / "empty").mkdir()
    done = fleetctl("apply", "-f", str(tmp_path / what))
    assert done.code == 2
    assert what in done.stderr


@pytest.mark.parametrize("case", ["unknown field", "key twice", "anchors that explode", "nested deeply", "no text"])
def test_rest_and_fleetctl_say_the_same(fleetctl: Fleetctl, world: World, case: str) -> None:
    text, _ = BAD[case]
    before = database()
    done = fleetctl("apply", "-f", "-", stdin=text)
    token = next(
        line.partition(" = ")[2].strip('"')
        for line in fleetctl.config.read_text().splitlines()
        if line.startswith("token")
    )
    problem = Rest(token).apply(text).json()
    said = [": ".join(part for part in (each["path"], each["message"]) if part) for each in problem["errors"]]
    assert done.code == 1
    assert done.stderr.splitlines() == [f"standard input: {each}" for each in said]
    assert database() == before


def test_a_manifest_of_ten_megabytes_is_refused_in_one_line(fleetctl: Fleetctl, tmp_path: Path) -> None:
    file = tmp_path / "large.yaml"
    file.write_bytes(b"#" * 10_000_000)
    done = fleetctl("apply", "-f", str(file))
    assert done.code == 1
    assert done.stderr.startswith(f"{file}: the body has more than 1048576 bytes; allowed: 1048576")
    assert len(done.stderr.splitlines()) == 1


def test_whoever_may_not_is_told_which_permission_is_missing(
    stranger: Fleetctl, world: World, django_user_model: type
) -> None:
    django_user_model.objects.create_user("eve", password="correct horse")  # type: ignore[attr-defined]
    stranger("login", "--username", "eve", "--password-stdin", stdin="correct horse")
    done = stranger("apply", "-f", "-", stdin=yaml.safe_dump(world.manifest()))
    assert done.code == 4
    assert "eve lacks the permission rollouts.add_deployment" in done.stderr
