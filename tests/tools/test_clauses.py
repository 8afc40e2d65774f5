"""The list of clauses that ``pytest --clauses`` holds the tests to."""

from __future__ import annotations

from pathlib import Path

from tests.support.clauses import Clause, claimed, faults_of, table


def test_clauses_are_the_rows_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "behaviour.md"
    page.write_text(
        "# B\n\nDEP-9 in a sentence\n\n| id | behaviour |\n| --- | --- |\n| DEP-1 | a |\n| **DEP-7** | b |\n"
    )
    assert claimed(page) == [Clause("DEP-1", guarded=False), Clause("DEP-7", guarded=True)]


def test_a_clause_without_a_test_and_an_unknown_clause_are_faults() -> None:
    faults = faults_of(["DEP-1", "DEP-2"], {"DEP-1": ["tests/a.py::one"], "DEP-99": ["tests/a.py::two"]})
    assert faults == [
        "DEP-2: no test names this clause; mark one with @pytest.mark.clause",
        "DEP-99: not a clause of docs/reference/behaviour.md, named by tests/a.py::two",
    ]


def test_the_table_shows_clauses_in_the_pages_order_and_says_where_a_test_is_missing() -> None:
    assert table(["DEP-2", "DEP-1"], {"DEP-1": ["tests/a.py::one", "tests/a.py::two"]}) == [
        "DEP-2    no test",
        "DEP-1    tests/a.py::one",
        "DEP-1    tests/a.py::two",
    ]


def test_the_product_claims_clauses() -> None:
    assert {"DEP-1", "DEP-7", "AGT-6", "DEV-1"} <= {clause.id for clause in claimed()}
