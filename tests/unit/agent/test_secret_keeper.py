"""Whatever happens to sources, cache and agent: values come from where they are, and are asked for only when due."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from agent.control import Unreachable
from agent.secrets.cache import SecretCache
from agent.secrets.keeper import SecretKeeper
from agent.secrets.resolution import Resolution
from agent.secrets.sources import MOST_AT_ONCE, Sources
from agent.store import Identity, Store
from agent.wire.manifest import SecretEnvVar, SecretRef
from agent.wire.messages import DeploymentDocument, SecretsReply, SecretsRequest, SecretValue
from tests.support.fake_control import score, service

REFS = [SecretRef("db", "password"), SecretRef("mail", "token")]
IDENTITY = Identity("edge-1", "uid-1", "https://fleet.example")
NEEDS = [SecretEnvVar(f"V{number}", reference) for number, reference in enumerate(REFS)]
values = st.sampled_from(["", "a", "hunter2", "two\nlines", "ü — ✓"])
references = st.sampled_from(REFS)


def document(revision: int) -> DeploymentDocument:
    api = service("api", "r.example/api:1", secret_env=NEEDS)
    return DeploymentDocument(uid="u1", namespace="lab", name="app", revision=revision, score=score(api))


class Life(RuleBasedStateMachine):
    """One deployment, a directory, a control plane; the agent may end at any time."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.vault: dict[SecretRef, str] = {}
        self.is_online, self.calls, self.revision, self.is_ordered = True, 0, 1, False
        #: What was resolved last without a problem; for which revision, if every source answered.
        self.last: dict[SecretRef, str] | None = None
        self.settled = 0
        Store(self.folder / "state").save_identity(IDENTITY, "credential")
        self.start_again()

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def ask(self, request: SecretsRequest) -> SecretsReply:
        self.calls += 1
        if not self.is_online:
            raise Unreachable("nobody answers")
        found = [ref for ref in request.references if ref in self.vault]
        return SecretsReply(values=[SecretValue(name=r.name, key=r.key, value=self.vault[r]) for r in found])

    # What happens ----------------------------------------------------------------------------------------------------

    @rule()
    def start_again(self) -> None:
        self.store = Store(self.folder / "state")
        self.store.identity()
        self.keeper = SecretKeeper(Sources(self.folder / "secrets", self.ask), SecretCache(self.store))

    @rule(reference=references, value=values)
    def set_in_the_vault(self, reference: SecretRef, value: str) -> None:
        self.vault[reference] = value

    @rule(reference=references)
    def delete_in_the_vault(self, reference: SecretRef) -> None:
        self.vault.pop(reference, None)

    @rule(reference=references, value=values)
    def put_a_file(self, reference: SecretRef, value: str) -> None:
        path = self.folder / "secrets" / reference.name / reference.key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"{value}\n".encode())
        path.chmod(0o600)

    @rule(reference=references)
    def take_the_file(self, reference: SecretRef) -> None:
        (self.folder / "secrets" / reference.name / reference.key).unlink(missing_ok=True)

    @rule()
    def go_offline_or_back(self) -> None:
        self.is_online = not self.is_online

    @rule()
    def retarget(self) -> None:
        self.revision += 1

    @rule()
    def order(self) -> None:
        self.keeper.expire()
        self.settled = 0

    @rule(name=st.sampled_from(["secrets.cache", "secrets.key"]))
    def lose_a_file_and_start_again(self, name: str) -> None:
        (self.folder / "state" / name).unlink(missing_ok=True)
        self.last, self.settled = None, 0
        self.start_again()

    # What must hold --------------------------------------------------------------------------------------------------

    @rule()
    def a_pass(self) -> None:
        before = self.calls
        found = self.keeper.known(document(self.revision))
        if self.settled == self.revision:
            assert (found.values, found.problems, self.calls) == (self.last, {}, before), "not watched"
        else:
            self._holds(found)

    @rule()
    def a_container_is_created(self) -> None:
        self._holds(self.keeper.anew(document(self.revision)))

    def _holds(self, found: Resolution) -> None:
        """Each value is the file's, else the vault's, else the one from before when the vault can't be asked."""
        assert found.is_fresh
        unconfirmed = False
        for reference in REFS:
            path = self.folder / "secrets" / reference.name / reference.key
            expected = path.read_bytes()[:-1].decode() if path.exists() else self.vault.get(reference)
            if not path.exists() and not self.is_online:
                unconfirmed = True
                expected = (self.last or {}).get(reference)
            assert (reference in found.problems) == (expected is None)
            if not found.problems:
                assert found.values[reference] == expected
        if not found.problems:
            self.last = dict(found.values)
            self.settled = self.settled if unconfirmed else self.revision

    @invariant()
    def nothing_is_in_clear(self) -> None:
        for path in (self.folder / "state").iterdir() if hasattr(self, "folder") else ():
            assert b"hunter2" not in path.read_bytes()


TestLife = pytest.mark.clause("AGT-10")(Life.TestCase)
TestLife.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


@pytest.mark.clause("AGT-10")
def test_many_references_are_asked_for_in_several_calls(tmp_path: Path):
    asked: list[int] = []

    def ask(request: SecretsRequest) -> SecretsReply:
        asked.append(len(request.references))
        return SecretsReply(values=[SecretValue(name=r.name, key=r.key, value=r.key) for r in request.references])

    many = [SecretRef("many", f"key-{number}") for number in range(MOST_AT_ONCE + 1)]
    answers = Sources(tmp_path, ask).ask("u1", many)
    assert asked == [MOST_AT_ONCE, 1]
    assert answers.values == {reference: reference.key for reference in many}
