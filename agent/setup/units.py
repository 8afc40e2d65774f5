"""The systemd units, as text."""

from __future__ import annotations

from agent.setup.layout import (
    AGENT_STATE,
    AGENT_UNIT,
    HOME,
    PODMAN_SOCKET,
    PODMAN_UNIT,
    STAGING,
    UPDATER_STATE,
    UPDATER_UNIT,
    USER,
)

#: What no program of ours needs, whoever it runs as; lines of a unit.
NOTHING_SPECIAL = """\
LockPersonality=yes
MemoryDenyWriteExecute=yes
NoNewPrivileges=yes
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectSystem=strict
# As ProtectKernelTunables and ProtectControlGroups do, but with the /proc that the machine has: theirs is another one,
# in which a device that is a container itself (LXC, nspawn) has the boot id of its host.
ReadOnlyPaths=/proc/sys /sys
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
UMask=0077
"""

_AGENT = f"""\
[Unit]
Description=Harmony Fleet agent
Wants=network-online.target {PODMAN_UNIT}
After=network-online.target {PODMAN_UNIT} {UPDATER_UNIT}
# One that dies at once must not keep systemd from starting the one before it, when that takes its place again.
StartLimitIntervalSec=0

[Service]
User={USER}
Group={USER}
ExecStart=/opt/harmony-fleet/active/fleet-agent run
Restart=always
RestartSec=5
# Less than the updater's patience with it.
TimeoutStopSec=60
# Folders that containers mount are looked at, wherever they are; nothing but the state folder is written.
ReadWritePaths={AGENT_STATE}
CapabilityBoundingSet=
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
{NOTHING_SPECIAL}
[Install]
WantedBy=multi-user.target
"""

_UPDATER = f"""\
[Unit]
Description=Harmony Fleet updater
# It goes on where its journal says, also when it is started for the tenth time.
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart=/opt/harmony-fleet/updater/fleet-updater run
Restart=always
RestartSec=2
RuntimeDirectory=harmony-fleet
RuntimeDirectoryMode=0755
# apt is started by systemd in a unit of its own, because it has to write everywhere and to outlive this one; the
# updater itself only asks systemd, reads the package database, writes its journal and keeps the agent's releases.
# It starts also where somebody has removed the folder for downloads, and then replaces no agent.
ReadWritePaths={UPDATER_STATE} -{STAGING} /opt/harmony-fleet
# Its own executable changes by setup only.
ReadOnlyPaths=/opt/harmony-fleet/updaters
# For its socket's group and to look into what belongs to others.
CapabilityBoundingSet=CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER
IPAddressDeny=any
PrivateTmp=yes
ProtectHome=yes
RestrictAddressFamilies=AF_UNIX
{NOTHING_SPECIAL}
[Install]
WantedBy=multi-user.target
"""


def _podman(uid: int) -> str:
    return f"""\
[Unit]
Description=Podman's API for Harmony Fleet, without root
Wants=network-online.target user@{uid}.service
After=network-online.target user@{uid}.service

[Service]
User={USER}
Group={USER}
Environment=HOME={HOME} XDG_RUNTIME_DIR=/run/user/{uid}
WorkingDirectory={HOME}
ExecStart=/usr/bin/podman system service --time=0 unix://{PODMAN_SOCKET}
RuntimeDirectory=harmony-fleet-podman
RuntimeDirectoryMode=0700
Restart=always
RestartSec=2
# Containers have cgroups of their own, and go on when this is restarted. No NoNewPrivileges and no mount namespace:
# Podman maps user ids by programs that need more rights than their caller has, and containers mount what they like.
Delegate=yes
KillMode=process

[Install]
WantedBy=multi-user.target
"""


def texts(uid: int) -> dict[str, str]:
    """File name to content; ``uid`` is the agent's user's."""
    return {PODMAN_UNIT: _podman(uid), UPDATER_UNIT: _UPDATER, AGENT_UNIT: _AGENT}
