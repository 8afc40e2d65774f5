"""``manage.py crds``: the CustomResourceDefinitions of the fleet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from fleet.kube.crds import yaml_files


class Command(BaseCommand):
    """K8S-1: prints what ``kubectl apply -f -`` takes; with ``--folder`` writes a file per kind."""

    help = "Print the CustomResourceDefinitions; manage.py crds | kubectl apply -f -"
    requires_system_checks: list[str] = []  # no database, no keys: it only prints

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--folder", type=Path, help="write a file per kind there instead")
        parser.add_argument("--check", action="store_true", help="write nothing, fail when a file there differs")

    def handle(self, *args: Any, folder: Path | None, check: bool, **options: Any) -> None:
        files = yaml_files()
        if folder is None:
            if check:
                raise CommandError("--check compares files: say where they are with --folder")
            self.stdout.write("---\n".join(files.values()), ending="")
            return
        old = [name for name, text in files.items() if not _has(folder / name, text)]
        if check and old:
            raise CommandError(f"not up to date in {folder}: {', '.join(old)}; run manage.py crds --folder {folder}")
        for name in old:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(files[name])


def _has(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text
