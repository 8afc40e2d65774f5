"""The mutants' runner, on a tree of one module and its tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.mutants import catalogue, runner
from tests.mutants.catalogue import CatalogueError, Mutant

CODE = "def larger(a, b):\n    return a if a > b else b\n"
TESTS = "from thing import larger\n\ndef test_larger():\n    assert larger(2, 1) == 2\n"
ENTRY = """
[[mutant]]
id = "smaller"
clause = "DEP-1"
why = "The smaller one would win."
file = "thing.py"
find = "a > b"
replace = "a < b"
tests = ["test_thing.py"]
"""


@pytest.fixture(autouse=True)
def few_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner's own pytest is what takes the time here; Django's plugin and others do nothing for such a tree."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "pytest_timeout")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with a copy of everything that the runner takes: files known to Git or not ignored by it."""
    root = tmp_path / "tree"
    root.mkdir()
    (root / "thing.py").write_text(CODE)
    (root / "test_thing.py").write_text(TESTS)
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    return root


def mutant(**changes: object) -> Mutant:
    values = {"id": "smaller", "clause": "DEP-1", "why": "…", "file": "thing.py", "tests": ["test_thing.py"]}
    return Mutant(**{**values, "find": "a > b", "replace": "a < b", **changes})


def test_a_mutant_is_noticed_by_the_test_that_fails(tree: Path) -> None:
    with runner.workshop(tree, copies=1) as place:
        assert place.faults_unmutated([mutant()]) == ""
        verdict = place.judge(mutant())
    assert (verdict.noticed_by, verdict.fault) == ("test_thing.py::test_larger", "")


def test_the_tree_itself_and_the_copy_are_as_before(tree: Path) -> None:
    with runner.workshop(tree, copies=1) as place:
        place.judge(mutant())
        assert place.faults_unmutated([mutant()]) == ""
    assert (tree / "thing.py").read_text() == CODE


def test_a_mutant_survives_when_its_tests_pass_all_the_same(tree: Path) -> None:
    with runner.workshop(tree, copies=1) as place:
        verdict = place.judge(mutant(find="else b", replace="else (b)"))
    assert verdict.fault.startswith("SURVIVED")


def test_a_mutant_that_breaks_the_import_tells_nothing(tree: Path) -> None:
    with runner.workshop(tree, copies=1) as place:
        verdict = place.judge(mutant(find="def larger(a, b):", replace="def larger(a, b)"))
    assert verdict.fault.startswith("BROKEN")
    assert not verdict.noticed_by


def test_tests_that_fail_without_a_mutation_are_said_so(tree: Path) -> None:
    (tree / "test_thing.py").write_text(TESTS.replace("== 2", "== 3"))
    with runner.workshop(tree, copies=1) as place:
        assert "test_larger" in place.faults_unmutated([mutant()])


def test_several_at_once_come_in_order(tree: Path) -> None:
    mutants = [mutant(id=f"smaller-{number}") for number in range(3)]
    with runner.workshop(tree, copies=2) as place:
        verdicts = list(runner.judge_all(place, mutants, at_once=2))
    assert [verdict.mutant.id for verdict in verdicts] == ["smaller-0", "smaller-1", "smaller-2"]
    assert all(verdict.noticed_by for verdict in verdicts)


def test_the_catalogue_reads_what_the_readme_describes(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(ENTRY)
    (loaded,) = catalogue.load(tmp_path, root=tree)
    assert (loaded.id, loaded.clause, loaded.database) == ("smaller", "DEP-1", "sqlite")
    assert catalogue.choose([loaded], ["smaller"]) == [loaded]


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ('"a > b"', '"a >= b"', "0 times in thing.py; it has to be there exactly once"),
        ('"a > b"', '"a"', "times in thing.py; it has to be there exactly once"),
        ('"thing.py"', '"other.py"', "the file other.py does not exist"),
        ('["test_thing.py"]', '["test_other.py::x"]', "the test test_other.py::x does not exist"),
        ('["test_thing.py"]', "[]", "length >= 1"),
        ('"a < b"', '"a > b"', "find and replace are the same"),
        ("why =", "reason =", "unknown field `reason`"),
        ("why =", 'database = "oracle"\nwhy =', "oracle"),
    ],
)
def test_the_catalogue_says_what_is_wrong(tree: Path, tmp_path: Path, before: str, after: str, fault: str) -> None:
    (tmp_path / "one.toml").write_text(ENTRY.replace(before, after))
    with pytest.raises(CatalogueError, match=fault.replace(">", r"\>")):
        catalogue.load(tmp_path, root=tree)


def test_an_id_is_used_once(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(ENTRY + ENTRY)
    with pytest.raises(CatalogueError, match="smaller: used for more than one mutant"):
        catalogue.load(tmp_path, root=tree)


def test_an_unknown_id_is_answered_with_the_known_ones() -> None:
    with pytest.raises(CatalogueError, match="no mutant is called larger; there are: smaller"):
        catalogue.choose([mutant()], ["larger"])


def test_a_guarded_clause_without_a_mutant_is_named() -> None:
    assert catalogue.without_mutant(["DEP-7", "DEP-1"], [mutant()]) == ["DEP-7"]
