"""What the door takes and answers, a file for each case: ``bad/<name>.yaml`` and its sentences, ``<name>.txt``."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.core import door

FOLDER = Path(__file__).parent / "manifests"
GOOD = sorted((FOLDER / "good").iterdir())
BAD = sorted((FOLDER / "bad").glob("*.yaml"))


@pytest.mark.clause("DEP-1", "DEP-3", "DEP-6", "TSK-1", "TSK-9", "UPG-1")
@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_good_manifests_are_admitted(path: Path) -> None:
    (admitted,) = door.admit(path.read_bytes())
    kinds = {"taskrun": "TaskRun", "taskschedule": "TaskSchedule", "device": "Device", "agentrelease": "AgentRelease"}
    assert admitted.manifest.kind == kinds.get(path.stem, "Deployment")


@pytest.mark.clause("DEP-1")
def test_a_missing_namespace_means_default() -> None:
    (admitted,) = door.admit((FOLDER / "good" / "as-printed.yaml").read_bytes())
    assert admitted.manifest.metadata.namespace == "default"


@pytest.mark.clause("DEP-2", "DEP-3", "DEP-4", "DEP-5", "DEP-6", "DEP-8", "TSK-1", "TSK-9", "UPG-1")
@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_bad_manifests_are_refused_with_every_fault_and_no_secret(path: Path) -> None:
    with pytest.raises(door.ManifestInvalid) as refused:
        door.admit(path.read_bytes())
    sentences = [str(fault) for fault in refused.value.faults]
    assert sentences == path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    assert "s3cr3t" not in str(refused.value)
