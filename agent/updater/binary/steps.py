"""The steps of an agent upgrade in their order, each with its limit and its rule after a crash (UPG-5, UPG-6). Pure."""

from __future__ import annotations

from collections.abc import Mapping

from agent.updater.attempt import ACCEPTED, Attempt
from agent.updater.binary.deeds import StartAgent, StartTrial, StopAgent
from agent.updater.binary.host import Trial
from agent.updater.journal import Event, Mark
from agent.updater.steps import TIME_LIMIT_SECONDS, Recovery, Step
from agent.wire.messages import AttemptState
from agent.wire.updater import AGENT_UPGRADE_V1

PREFLIGHT, DOWNLOAD, VERIFY, UNPACK = "preflight", "download", "verify", "unpack"
SELF_TEST, PROBE = "self-test", "probe"
STOP, SWITCH, START, READINESS, RESTORE = "stop", "switch", "start", "readiness", "restore"

#: How often a step before ``stop`` is begun for one attempt, crashes included.
MOST_BEGINNINGS = 3
#: How often systemd may start the candidate anew before it is taken back.
MOST_RESTARTS = 3
#: How long the agent that was restored has to stay up.
STEADY_SECONDS = 10.0
#: Between two tries to restore.
RESTORE_PAUSE_SECONDS = 10.0

_TABLE = (
    Step(ACCEPTED, TIME_LIMIT_SECONDS, Recovery.ASK_FOR_TIME, ""),
    Step(PREFLIGHT, 300.0, Recovery.REPEAT, "Looks at the layout, the active release and free space"),
    Step(DOWNLOAD, 7_200.0, Recovery.REPEAT, "Fetches the archive", StartTrial(Trial.DOWNLOAD)),
    Step(VERIFY, 900.0, Recovery.REPEAT, "Copies the archive and compares its digest"),
    Step(UNPACK, 1_800.0, Recovery.REPEAT, "Unpacks the archive beside the other releases"),
    Step(SELF_TEST, 300.0, Recovery.REPEAT, "Lets the candidate test itself", StartTrial(Trial.SELF_TEST)),
    Step(PROBE, 300.0, Recovery.REPEAT, "Lets the candidate call the control plane", StartTrial(Trial.PROBE)),
    Step(STOP, 120.0, Recovery.RESTORE, "Stops the agent", StopAgent()),
    Step(SWITCH, 60.0, Recovery.RESTORE, "Lets `active` lead to the candidate"),
    Step(START, 120.0, Recovery.RESTORE, "Starts the candidate", StartAgent()),
    Step(READINESS, 600.0, Recovery.RESTORE, "Waits for the candidate to say that it is ready"),
    Step(RESTORE, 300.0, Recovery.REPEAT, "Brings the previous agent back"),
)
STEPS = {step.name: step for step in _TABLE}
#: Steps that run a trial.
TRIALS: Mapping[str, Trial] = {DOWNLOAD: Trial.DOWNLOAD, SELF_TEST: Trial.SELF_TEST, PROBE: Trial.PROBE}
#: From here on a failure is followed by ``restore``.
_TOUCHES_THE_AGENT = (STOP, SWITCH, START, READINESS)


def after(name: str) -> Step:
    """The step that follows when all goes well; ``restore`` follows none."""
    names = list(STEPS)
    return STEPS[names[names.index(name) + 1]]


def touches_the_agent(name: str) -> bool:
    """Whether the agent that ran may be stopped or replaced in this step."""
    return name in _TOUCHES_THE_AGENT


def needs_ready(attempt: Attempt) -> bool:
    """Whether the candidate runs and is waited for."""
    is_ours = attempt.executor == AGENT_UPGRADE_V1 and attempt.state is AttemptState.RUNNING
    return is_ours and (attempt.place.step, attempt.place.event) == (READINESS, Event.BEGAN)


def is_ready(attempt: Attempt) -> bool:
    """Whether it has said so."""
    return bool(attempt.notes(READINESS, Mark.READY))
