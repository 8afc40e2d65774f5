"""The steps of a system upgrade in their order, each with its limit and its rule after a crash (SYS-1, SYS-5). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agent.updater.actions import Deed, StartJob
from agent.updater.attempt import ACCEPTED
from agent.updater.machine import Job

PREFLIGHT, UPDATE, SIMULATE, UPGRADE = "preflight", "update", "simulate", "upgrade"
AUDIT, REBOOT, VERIFY = "audit", "reboot", "verify"

#: After a reboot of a device whose attempt has not begun: how long it waits for new remaining seconds (TSK-4).
TIME_LIMIT_SECONDS = 86_400.0
#: How often apt is started and a reboot asked for, for one attempt.
MOST_STARTS = 3
MOST_REBOOTS = 3
REBOOT_PAUSE_SECONDS = 600.0
#: How often the device may start anew while the proof is awaited.
MOST_BOOTS_IN_VERIFY = 10
#: The first note about apt's silence; every further one comes after twice as long.
SILENCE_SECONDS = 600.0


class Recovery(StrEnum):
    """What is done when the updater finds that it, or the device, was killed or started anew in a step or after it."""

    ASK_FOR_TIME = "begins if its seconds are left; after a boot it asks for new ones first"
    FAIL = "fails: nothing was changed"
    FIND_APT = "waits while apt runs; else a clean package database goes on, another is `repair-required`"
    REPEAT = "is done again"
    RESTORE = "restores the previous agent, unless the candidate has said that it is ready"
    COMPARE_BOOTS = "another boot id ends the step; the same one asks again"


@dataclass(frozen=True, slots=True)
class Step:
    """``limit_seconds`` counts from when the step began, or from the boot after it; ``None``: no limit.

    ``begins`` is the sentence with which it begins, ``deed`` what is done then.
    """

    name: str
    limit_seconds: float | None
    recovery: Recovery
    begins: str
    deed: Deed | None = None


_TABLE = (
    Step(ACCEPTED, TIME_LIMIT_SECONDS, Recovery.ASK_FOR_TIME, ""),
    Step(PREFLIGHT, 3_600.0, Recovery.FAIL, "Looks at locks, the package database, the clock and free space"),
    Step(UPDATE, 1_800.0, Recovery.FAIL, "Fetches the package lists (apt-get update)", StartJob(Job.UPDATE)),
    Step(SIMULATE, 900.0, Recovery.FAIL, "Simulates the full upgrade and measures what it needs"),
    Step(
        UPGRADE,
        None,
        Recovery.FIND_APT,
        "Upgrades the packages in a unit of its own (apt-get full-upgrade); from here on nothing interrupts it",
        StartJob(Job.UPGRADE),
    ),
    Step(AUDIT, 3_600.0, Recovery.REPEAT, "Looks for packages that are not fully installed (dpkg --audit)"),
    Step(REBOOT, 3_600.0, Recovery.COMPARE_BOOTS, "Asks for a reboot"),
    Step(VERIFY, 86_400.0, Recovery.REPEAT, "Compares kernels, audits the packages, waits for the agent's report"),
)
STEPS = {step.name: step for step in _TABLE}


def after(name: str) -> Step:
    """The step that follows; there is none after the last."""
    names = list(STEPS)
    return STEPS[names[names.index(name) + 1]]
