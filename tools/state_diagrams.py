"""Draw docs/reference/states.md from the models' state machines; with ``--check``, only say whether it is up to date.

Run from the checkout: ``python tools/state_diagrams.py [--check]``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "states.md"
HEAD = """# States

Drawn from the models by `tools/state_diagrams.py`; `make check` fails when this page is older than they are. An arrow's
text is the transition that a service calls, or the bulk service that moves targets by thousands.

"""
Arrow = tuple[str, str, str]


def main(arguments: list[str]) -> int:
    """Write the page, or compare it; the exit code is 1 when it is out of date."""
    sys.path.insert(0, str(ROOT))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fleet.settings.base")
    import django  # noqa: PLC0415  (needs the path)

    django.setup()
    page = HEAD + "\n".join(_sections())
    if "--check" not in arguments:
        PAGE.write_text(page)
        return 0
    if PAGE.exists() and PAGE.read_text() == page:
        return 0
    print(f"{PAGE.relative_to(ROOT)} is out of date; run: python tools/state_diagrams.py", file=sys.stderr)
    return 1


def _sections() -> Iterator[str]:
    from django.apps import apps  # noqa: PLC0415  (after setup)
    from django_fsm import FSMField  # noqa: PLC0415

    from fleet.targeting.models import ARROWS, AbstractTarget  # noqa: PLC0415

    for model in apps.get_models():
        if model._meta.proxy:
            continue  # its states are those of the model behind it
        for field in model._meta.get_fields():
            if not isinstance(field, FSMField):
                continue
            by_bulk = issubclass(model, AbstractTarget) and field.name == "state"
            arrows = _bulk(ARROWS) if by_bulk else _transitions(model, field)
            yield _section(f"{model.__name__}.{field.name}", field, sorted(arrows), model.__doc__ or "")


def _transitions(model: type[Any], field: Any) -> Iterator[Arrow]:
    for transition in field.get_all_transitions(model):
        yield str(transition.source), str(transition.target), transition.name


def _bulk(arrows: dict[Any, tuple[Any, ...]]) -> Iterator[Arrow]:
    for target, sources in arrows.items():
        for source in sources:
            yield str(source), str(target), "targets_" + _VERBS[str(target)]


_VERBS = {"released": "release / absorb", "converged": "absorb", "failed": "absorb / fail_forgotten", "ended": "end"}


def _section(title: str, field: Any, arrows: Iterable[Arrow], about: str) -> str:
    lines = [f"## {title}", "", about.strip().partition("\n")[0], "", "```mermaid", "stateDiagram-v2"]
    lines.append(f"    [*] --> {field.default}")
    lines += [f"    {source} --> {target}: {name}" for source, target, name in arrows]
    lines += ["```", "", "| state | shown as |", "| --- | --- |"]
    lines += [f"| `{value}` | {label} |" for value, label in field.choices]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
