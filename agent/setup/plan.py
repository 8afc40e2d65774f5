"""All that a device needs, in the order in which it can be made."""

from __future__ import annotations

import pwd
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.releases.description import Release
from agent.setup import units
from agent.setup.items import Account, Installed, Item, Linger, Link, OwnFolder, SubIds, TextFile
from agent.setup.layout import AGENT_STATE, FOLDERS, HOME, PODMAN_SOCKET, USER, Layout

#: What ``active`` leads to may be the choice of whoever has the rights of the agent's user, so root must not run it: it
#: becomes that user first, without a way back, and without a terminal into which words for root's shell could be put.
COMMAND = f"""\
#!/bin/sh
# Made by fleet-agent setup, which replaces it.
program=/opt/harmony-fleet/active/fleet-agent
if [ "${{1-}}" = setup ]; then
    echo "fleet-agent: setup is run as root, from where a release was unpacked:" \\
        "harmony-fleet-VERSION/fleet-agent setup" >&2
    exit 2
fi
[ "$(id -u)" -eq 0 ] || exec "$program" "$@"
exec setsid --wait setpriv --reuid={USER} --regid={USER} --init-groups --no-new-privs --reset-env \\
    -- "$program" "$@"
"""

UPDATER_CONFIG = """\
# The updater's configuration; every key has a default. See docs/reference/updater.md.
[updater]
"""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the configuration of a new device is made from."""

    url: str
    device: str
    ca_file: str = ""


def agent_config(wishes: Wishes) -> str:
    """A first ``agent.toml``. Both values were checked: no text of TOML has to be quoted in them."""
    ca_file = f'ca_file = "{wishes.ca_file}"\n' if wishes.ca_file else ""
    return (
        f'[server]\nurl = "{wishes.url}"\n{ca_file}\n'
        f'[device]\nid = "{wishes.device}"\n# labels = {{ role = "analyzer" }}\n\n'
        f'[agent]\nstate_dir = "{AGENT_STATE}"\n\n'
        f'[runtime]\nkind = "podman"\nsocket = "{PODMAN_SOCKET}"\n'
    )


def items(layout: Layout, source: Path, release: Release, wishes: Wishes | None) -> Iterator[Item]:
    """Each is looked at only when those before it are made, because it may depend on them."""
    yield Account(HOME)
    yield SubIds(layout.at("/etc/subuid"), "--add-subuids")
    yield SubIds(layout.at("/etc/subgid"), "--add-subgids")
    for folder in FOLDERS:
        yield OwnFolder(layout.at(folder.path), folder)
    yield from _programs(layout, source, release)
    yield TextFile(layout.agent_config, agent_config(wishes) if wishes else "", keeps=True)
    yield TextFile(layout.updater_config, UPDATER_CONFIG, keeps=True)
    yield Linger(layout.at(f"/var/lib/systemd/linger/{USER}"))
    for name, text in units.texts(_uid()).items():
        yield TextFile(layout.units / name, text)


def _programs(layout: Layout, source: Path, release: Release) -> Iterator[Item]:
    """The updater has a copy of its own, which no agent upgrade touches (UPG-9)."""
    for folder, link in (("releases", "active"), ("updaters", "updater")):
        yield Installed(source, layout.opt / folder / release.version, release)
        yield Link(layout.opt / link, f"{folder}/{release.version}")
    yield TextFile(layout.at("/usr/local/bin/fleet-agent"), COMMAND, mode=0o755)
    yield Link(layout.at("/usr/local/sbin/fleet-updater"), "/opt/harmony-fleet/updater/fleet-updater")


def _uid() -> int:
    """Before the user is made (``--check`` on a bare machine) nobody knows its number."""
    try:
        return pwd.getpwnam(USER).pw_uid
    except KeyError:
        return 0
