"""State machines are moved by services only, under a lock, and never by the way."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from tests.architecture.source import SERVERS, Module, dotted, modules

SERVER_MODULES = modules(*SERVERS)


def transitions() -> Iterator[tuple[Module, ast.FunctionDef]]:
    for module in SERVER_MODULES:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef) and any(
                dotted(decorator) == "transition()" for decorator in node.decorator_list
            ):
                yield module, node


@cache
def transition_names() -> frozenset[str]:
    return frozenset(function.name for _, function in transitions())


@cache
def state_fields() -> set[str]:
    return {
        target.id
        for module in SERVER_MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Assign) and dotted(node.value) == "FSMField()"
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def test_the_walk_finds_the_state_machines() -> None:
    assert {"mark_deleting", "begin_canary", "supersede"} <= transition_names()
    assert {"life", "phase", "state"} <= state_fields()


def test_transitions_are_called_by_services_only() -> None:
    calls = [
        f"{module.at(call)}: {called}()"
        for module in SERVER_MODULES
        if not module.may_write
        for call, called in module.calls()
        if called.rpartition(".")[2] in transition_names() and not is_of_asyncio(module, called)
    ]
    assert not calls


def is_of_asyncio(module: Module, called: str) -> bool:
    """Tasks can be cancelled too; what has an event loop has no models in its hands."""
    return called.endswith(".cancel") and "import asyncio" in module.path.read_text(encoding="utf-8")


def only_stamps(statement: ast.stmt) -> bool:
    is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    stamps = isinstance(statement, ast.Assign) and all(dotted(t).startswith("self.") for t in statement.targets)
    return is_docstring or stamps or isinstance(statement, ast.Pass)


def test_a_transition_only_stamps_fields() -> None:
    more = [
        f"{module.at(statement)}: {transition.name} does {ast.unparse(statement)}"
        for module, transition in transitions()
        for statement in transition.body
        if not only_stamps(statement)
    ]
    assert not more


def test_states_are_assigned_by_nobody() -> None:
    assigned = [
        f"{module.at(node)}: {ast.unparse(target)} = …"
        for module in SERVER_MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Assign | ast.AugAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Attribute) and target.attr in state_fields()
    ]
    assert not assigned


def test_bulk_changes_of_a_state_are_services() -> None:
    updates = [
        f"{module.at(call)}: {called}({keyword.arg}=…)"
        for module in SERVER_MODULES
        if not module.may_write
        for call, called in module.calls()
        if called.endswith(".update")
        for keyword in call.keywords
        if keyword.arg in state_fields()
    ]
    assert not updates


def test_every_state_field_is_protected() -> None:
    for module in SERVER_MODULES:
        for call, called in module.calls():
            if called == "FSMField":
                protected = [k.value for k in call.keywords if k.arg == "protected"]
                assert [ast.unparse(value) for value in protected] == ["True"], module.at(call)


def test_nobody_refreshes_from_the_database() -> None:
    """On a protected field it switches the protection off and on for all threads: lock and fetch again instead."""
    refreshes = [
        m.at(call) for m in SERVER_MODULES for call, called in m.calls() if called.endswith(".refresh_from_db")
    ]
    assert not refreshes
