"""The product's source as syntax trees, for tests about its structure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERVERS = ("devices", "fleet", "releases", "rollouts", "tasks", "upgrades", "vault")
APPS = ("devices", "releases", "rollouts", "tasks", "upgrades", "vault", "fleet/targeting")
TOOLS = ("harness", "demo", "bench", "simulation", "tools")
#: Where writes are allowed: rooms for writing, and pieces of fleet/core that services are made of.
WRITERS = ("services", "mailbox", "audit", "leases", "fsm", "roles")


@dataclass(frozen=True)
class Module:
    path: Path

    @property
    def tree(self) -> ast.Module:
        """Parsed when a test asks: every worker of a run collects the modules, one or two look into them."""
        return parsed(self.path)

    @property
    def name(self) -> str:
        """Its path in the checkout: ``devices/models.py``."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def lines(self) -> int:
        return len(self.path.read_text(encoding="utf-8").splitlines())

    @property
    def may_write(self) -> bool:
        return bool(set(WRITERS) & {*self.path.parts, self.path.stem})

    def at(self, node: ast.AST) -> str:
        """Where a node is, as editors understand it."""
        return f"{self.name}:{getattr(node, 'lineno', 1)}"

    def calls(self) -> Iterator[tuple[ast.Call, str]]:
        """Every call with the dotted text of what is called: ``Target.objects.filter().update``."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                yield node, dotted(node.func)


@cache
def modules(*folders: str) -> tuple[Module, ...]:
    """The modules below these folders of the checkout, without migrations."""
    paths = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return tuple(Module(path) for path in paths if "migrations" not in path.parts)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def dotted(node: ast.AST) -> str:
    """``a.b().c`` of an expression; empty where it is something else than names, attributes and calls."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{dotted(value)}.{name}"
        case ast.Call(func=called):
            return f"{dotted(called)}()"
        case ast.Subscript(value=value):
            return f"{dotted(value)}[]"
    return ""
