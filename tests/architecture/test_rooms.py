"""Each app has the same rooms, each room does its own work, and none outgrows what a person reads in one go."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

import pytest

from tests.architecture.source import APPS, ROOT, SERVERS, TOOLS, Module, dotted, modules

ROOMS = {"__init__", "apps", "models", "policy", "services", "selectors", "jobs", "api", "admin", "migrations"}
#: Rooms that one app has for a reason.
WITH_A_REASON = {
    "devices/api_urls": "addresses of api.py",
    "devices/agent_views": "what every app's views for devices share",
    "devices/agent_urls": "addresses of agent_api.py",
    "devices/waiting": "the waiting entrance: held requests, in a process of their own (ADR 8)",
    "devices/polling": "the poll's one statement, below the ORM: prepared once per connection",
    "rollouts/api_urls": "addresses of api.py",
    "rollouts/agent_api": "what devices ask that takes a deployment to answer: secrets, logs",
    "rollouts/agent_urls": "addresses of agent_api.py",
    "tasks/api_urls": "addresses of api",
    "releases/uses": "what the apps above say of who may still fetch a release",
    "releases/reading": "what an archive says of itself, which nobody may trust",
    "releases/api_urls": "addresses of api",
    "releases/agent_api": "the archives that devices fetch",
    "releases/agent_urls": "addresses of agent_api.py",
    "upgrades/agent_api": "what an updater asks before it begins (TSK-4)",
    "upgrades/agent_urls": "addresses of agent_api.py",
    "upgrades/api_urls": "addresses of api",
    "vault/api_urls": "addresses of api.py",
    "vault/sealing": "encryption, which selectors and services share (ADR 7)",
    "vault/checks": "what manage.py check --deploy says of missing keys",
    "vault/uses": "what the apps above say of who needs a secret",
    "vault/management": "manage.py rotate_secrets (AGT-10)",
    "rollouts/images": "what a revision's tags stand for (DEP-18), which policy, selectors and services read",
    "devices/mailbox": "both mailboxes: services that the apps above call (ADR 3)",
    "devices/group_sources": "the pluggable answer to who is in a group (DEP-7)",
    "devices/entrance": "dispatches a device's request before all other middleware",
    "devices/agent_api": "the agent-facing API: plain views, no serializer on the hot path",
    "devices/readiness": "what /readyz asks this app",
    "devices/signals": "what the apps above listen to",
    "devices/management": "manage.py new_epoch (AGT-9)",
    "fleet/targeting/conditions": "why nothing is frozen, and conditions, shared by all that is targeted (DEP-15)",
    "fleet/targeting/wording": "the sentences of the gate, shared by all that is targeted (DEP-16)",
}
CLOCKS = ("fleet/core/clock.py", "agent/clock.py")
WALL_CLOCKS = ("datetime.now", "datetime.utcnow", "datetime.today", "date.today", "timezone.now", "time.time")
MOST_LINES_OF_A_MODULE = 400
MOST_LINES_OF_A_FUNCTION = 40
#: Longer than that for a reason: "module.py" or "module.py::function".
LONG_FOR_A_REASON: dict[str, str] = {}
SERVICES = tuple(f"{app}/services" for app in ("devices", "releases", "rollouts", "tasks", "upgrades", "vault"))
WRITES = {"create", "bulk_create", "get_or_create", "update_or_create", "update", "bulk_update", "delete"}

PRODUCT = modules("agent", *SERVERS)
EVERYTHING = modules("agent", *SERVERS, *TOOLS, "tests")


@pytest.mark.parametrize("app", APPS)
def test_an_app_has_the_rooms_that_every_app_has(app: str) -> None:
    entries = {path.stem for path in (ROOT / app).iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert not {name for name in entries - ROOMS if f"{app}/{name}" not in WITH_A_REASON}


def test_only_clocks_read_the_time() -> None:
    readings = [
        f"{module.at(node)}: {dotted(node)}"
        for module in PRODUCT
        if module.name not in CLOCKS
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and reads_a_wall_clock(dotted(node))
    ]
    assert not readings


@pytest.mark.parametrize(
    ("name", "reads"),
    [("datetime.now", True), ("datetime.datetime.now", True), ("time.time", True), ("clock.now", False)],
)
def test_a_wall_clock_is_recognised(name: str, reads: bool) -> None:
    assert reads_a_wall_clock(name) is reads


def test_writes_are_services() -> None:
    writes = [
        f"{module.at(call)}: {called}()"
        for module in modules(*SERVERS)
        if not module.may_write
        for call, called in module.calls()
        if ".objects." in called and called.rpartition(".")[2] in WRITES
    ]
    assert not writes


def test_services_are_called_with_names() -> None:
    """``<entity>_<verb>(*, …)``: a call reads like a sentence, and arguments can be added."""
    exported = {name for package in modules(*SERVICES) for name in reexported(package)}
    positional = [
        f"{module.at(node)}: {node.name}"
        for module in modules(*SERVICES)
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef) and node.name in exported and len(node.args.args) > 1
    ]
    assert exported
    assert not positional


@pytest.mark.parametrize("module", [pytest.param(module, id=module.name) for module in modules("agent/wire")])
def test_the_wire_needs_the_standard_library_and_msgspec_only(module: Module) -> None:
    assert imports(module) <= {*sys.stdlib_module_names, "msgspec", "agent"}


def test_the_agent_needs_little() -> None:
    """Every library is memory on a small device and a package in the release."""
    needed = {name for module in modules("agent") for name in imports(module)} - {*sys.stdlib_module_names}
    assert needed <= {"agent", "msgspec", "nacl", "podman", "requests", "urllib3"}


def test_the_server_runs_without_the_test_harness() -> None:
    assert not {name for module in PRODUCT for name in imports(module)} & {
        "harness",
        "demo",
        "bench",
        "simulation",
        "tests",
        "pytest",
    }


def test_the_harness_runs_without_pytest() -> None:
    assert not {name for module in modules("harness", "demo", "bench", "simulation") for name in imports(module)} & {
        "pytest",
        "tests",
    }


def test_modules_are_short() -> None:
    found = {module.name: module.lines for module in EVERYTHING if module.lines > MOST_LINES_OF_A_MODULE}
    assert {name: lines for name, lines in found.items() if name not in LONG_FOR_A_REASON} == {}


def test_functions_are_short() -> None:
    found = {
        f"{module.name}::{node.name}": lines_of(node)
        for module in modules("agent", *SERVERS, *TOOLS)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and lines_of(node) > MOST_LINES_OF_A_FUNCTION
    }
    assert {name: lines for name, lines in found.items() if name not in LONG_FOR_A_REASON} == {}


def test_what_is_excused_still_exists() -> None:
    """An excuse goes with what it excused."""
    assert [name for name in LONG_FOR_A_REASON if not (ROOT / name.partition("::")[0]).exists()] == []


def reads_a_wall_clock(name: str) -> bool:
    return any(name == clock or name.endswith(f".{clock}") for clock in WALL_CLOCKS)


def reexported(module: Module) -> set[str]:
    """What a package's ``__init__`` offers of its modules."""
    lines = module.tree.body if module.path.name == "__init__.py" else []
    return {alias.name for line in lines if isinstance(line, ast.ImportFrom) for alias in line.names}


def imports(module: Module) -> set[str]:
    return set(_imported(module.tree))


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Without the docstring: explaining more is no reason to split."""
    assert function.end_lineno
    docstring = function.body[0] if ast.get_docstring(function) else None
    explained = docstring.end_lineno - docstring.lineno + 1 if docstring and docstring.end_lineno else 0
    return function.end_lineno - function.lineno + 1 - explained


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
