"""Agent upgrades by fleetctl, REST and manifest: the same refusals, the same sentence (UPG-1, UPG-2, UPG-9)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
import yaml
from django.contrib.auth.models import User

from agent.wire.messages import AttemptState
from fleet.core import clock
from tests.integration.api.rest import Rest, problem
from tests.integration.ctl.cli import Fleetctl
from tests.integration.upgrades.agents import NEW, Agents, target

PATH = "devices/edge-1/agent-upgrade/"
OFFERED = "Agent 1.4.0 is offered; the device has not begun yet"
DIGEST = "ab" * 32
OPTIONS = ("--architecture", "amd64", "--url", target().url, "--max-size", "30000000", "--sha256", DIGEST)


@pytest.fixture
def world(transactional_db: None) -> Iterator[Agents]:
    """A fleet with updaters, for the server's threads too; its clock stands still."""
    made = Agents()
    with clock.reading(lambda: made.now):
        yield made


@pytest.fixture
def rest(world: Agents) -> Rest:
    return Rest.of(User.objects.create_superuser("eve"))


def manifest(version: str = NEW, name: str = "edge-1", **fields: object) -> str:
    wanted = {**msgspec.to_builtins(target(version)), **fields}
    head = {"apiVersion": "fleet.nationtech.io/v1alpha1", "kind": "Device", "metadata": {"name": name}}
    return yaml.safe_dump({**head, "spec": {"agentUpgrade": wanted}})


@pytest.mark.clause("UPG-1", "UPG-2", "API-2")
def test_fleetctl_sets_shows_retries_and_clears_what_rest_shows_too(
    fleetctl: Fleetctl, world: Agents, rest: Rest
) -> None:
    device = world.machine()
    done = fleetctl("device", "upgrade-agent", "edge-1", "--version", NEW, *OPTIONS)
    assert (done.code, done.stdout) == (0, f"device edge-1: under-way. {OFFERED}\n")
    shown = rest.get("devices/edge-1/")
    assert shown["spec"]["agentUpgrade"] == msgspec.to_builtins(target())
    assert (shown["status"]["agentUpgrade"]["message"], shown["status"]["agentUpgrade"]["setBy"]) == (OFFERED, "ada")
    described = fleetctl("describe", "device", "edge-1").stdout
    assert "  wanted:      1.4.0 by ada at 2026-12-01 14:00:00 UTC\n" in described
    assert f"  upgrade:     under-way since 2026-12-01 14:00:00 UTC: {OFFERED}\n" in described

    refused = fleetctl("device", "retry-upgrade", "edge-1")
    assert (refused.code, "nothing to retry on device edge-1" in refused.stderr) == (5, True)
    world.says_attempt(device, AttemptState.RUNNING)
    given_up = fleetctl("device", "give-up-upgrade", "edge-1")
    assert given_up.stdout.startswith("device edge-1: failed. Given up by ada: the device did not say how it went")
    assert fleetctl("device", "retry-upgrade", "edge-1").stdout == f"device edge-1: under-way. {OFFERED}\n"
    assert fleetctl("device", "keep-agent", "edge-1").stdout == "device edge-1 keeps its agent 1.3.0\n"
    assert rest.get("devices/edge-1/")["spec"]["agentUpgrade"] is None
    assert rest.get("devices/")["results"][0]["status"]["agentUpgrade"] is None


@pytest.mark.clause("UPG-1", "API-2")
def test_a_manifest_is_applied_once_and_refused_in_the_same_words_everywhere(
    fleetctl: Fleetctl, world: Agents, rest: Rest
) -> None:
    world.machine()
    said = [fleetctl("apply", "-f", "-", *more, stdin=manifest()).stdout for more in (("--dry-run",), (), ())]
    assert said == [
        "device edge-1 created: generation 1 (dry run: nothing was changed)\n",
        "device edge-1 created: generation 1\n",
        "device edge-1 unchanged: generation 1 has this spec already\n",
    ]
    assert fleetctl("apply", "-f", "-", stdin=manifest("1.5.0")).stdout == "device edge-1 configured: generation 2\n"

    wrong = "The artifact is for arm64 and the device is amd64"
    body = {**msgspec.to_builtins(target()), "architecture": "arm64"}
    assert wrong in problem(rest.call("PUT", PATH, body), 422)["detail"]
    arm = fleetctl("apply", "-f", "-", stdin=manifest(architecture="arm64"))
    assert (arm.code, f"spec.agentUpgrade.architecture: {wrong}" in arm.stderr) == (1, True)
    unknown = fleetctl("apply", "-f", "-", stdin=manifest(name="edge-9"))
    assert (unknown.code, "metadata.name: no device of this name is enrolled" in unknown.stderr) == (1, True)
    ftp = problem(rest.call("PUT", PATH, {**msgspec.to_builtins(target()), "url": "ftp://r.example.com/a"}), 422)
    assert [fault["path"] for fault in ftp["errors"]] == ["spec.agentUpgrade.url"]
    assert rest.get("devices/edge-1/")["spec"]["agentUpgrade"]["version"] == "1.5.0"
