"""``make demo``: a control plane and five devices on this machine, and a rollout that goes to a canary first.

All is done through the product's own entrances (``fleet-agent``, ``fleetctl``), so what is shown works for you too.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from demo import devices, example
from demo.stage import Stage, built, prepare_database
from harness.control_plane import ROOT
from harness.waiting import wait_until

CANARY = "edge-1"
SIMULATED = ("edge-2", "edge-3", "edge-4", "edge-5")
GROUP = "lab"
#: From apply to converged; the machine may have two busy cores.
LIMIT_SECONDS = 120


class Fleetctl:
    """Runs ``fleetctl`` as a person would, with its own settings folder."""

    def __init__(self, server: str, home: Path) -> None:
        self._env = {**os.environ, "FLEETCTL_SERVER": server, "XDG_CONFIG_HOME": str(home)}

    def __call__(self, *arguments: str, stdin: str | None = None, show: bool = True) -> str:
        """Run a command to its end; its output is shown and returned. Ends the demo when it fails."""
        if show:
            say_command("fleetctl", *arguments)
        done = subprocess.run(
            self._command(arguments), env=self._env, cwd=ROOT, input=stdin, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(
                f"fleetctl {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
            )
        if show:
            print(done.stdout, end="", flush=True)
        return done.stdout

    def live(self, *arguments: str) -> int:
        """Run a command whose output goes to the terminal as it comes; its exit code."""
        say_command("fleetctl", *arguments)
        return subprocess.run(self._command(arguments), env=self._env, cwd=ROOT, check=False).returncode

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "fleet.ctl", *arguments]


def main() -> int:
    """Build the stage, play, and take it down; 0 when the rollout converged in time."""
    options = _arguments()
    for each in (signal.SIGINT, signal.SIGTERM):  # a shell's background job starts with SIGINT ignored
        signal.signal(each, _as_ctrl_c)
    try:
        with built() as stage:
            return _play_or_explain(stage, options)
    except KeyboardInterrupt:
        say("Stopped; nothing is left running.")
        return 130


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make demo DEMO_ARGS=…", description=__doc__)
    parser.add_argument("--exit", action="store_true", help="end when the rollout has converged, 0 only if it has")
    parser.add_argument("--port", type=int, default=8000, help="of the web server, if free (default 8000)")
    return parser.parse_args()


def _play_or_explain(stage: Stage, options: argparse.Namespace) -> int:
    try:
        return _play(stage, options)
    except (TimeoutError, RuntimeError) as error:
        _show_logs(stage)
        say(f"The demo did not work: {error}")
        return 1


def _play(stage: Stage, options: argparse.Namespace) -> int:
    fleetctl, server = _start_control_plane(stage, options.port)
    _start_devices(stage, fleetctl, server, stage.control_plane.waiting())
    _choose_canary(fleetctl)
    code = _roll_out(stage, fleetctl)
    _show_containers(stage)
    if code:
        _show_logs(stage)
        say(f"The rollout did not converge within {LIMIT_SECONDS} s.")
    if options.exit:
        return code
    _stay(stage, server)
    return 0


def _start_control_plane(stage: Stage, preferred_port: int) -> tuple[Fleetctl, str]:
    say("Starting the control plane: web, waiting entrance, worker, scheduler, on SQLite and a folder as broker")
    prepare_database(stage)
    server = stage.control_plane.web(port=example.free_port(preferred_port))
    stage.control_plane.worker()
    stage.control_plane.beat()
    say(f"Admin: {server}/admin/  login: {stage.admin}  password: {stage.password}")
    fleetctl = Fleetctl(server, stage.folder / "config")
    fleetctl("login", "--username", stage.admin, "--password-stdin", stdin=stage.password)
    return fleetctl, server


def _start_devices(stage: Stage, fleetctl: Fleetctl, server: str, waiting: str) -> None:
    if stage.podman:
        say(f"{CANARY} runs real containers on a Podman of the demo's own; {', '.join(SIMULATED)} are simulated")
    else:
        say(f"All five devices are simulated: {stage.no_podman_because}")
    fleetctl("group", "create", GROUP)
    token = _token(fleetctl)
    sockets = {CANARY: stage.podman.socket if stage.podman else None} | dict.fromkeys(SIMULATED)
    home = stage.folder / "devices"
    fleet = [
        devices.prepare(home, name, server=server, socket=socket, waiting=waiting) for name, socket in sockets.items()
    ]
    for device in fleet:
        devices.enrol(device, token)
    for process in devices.start_agents(fleet):
        stage.exits.callback(process.stop)


def _token(fleetctl: Fleetctl) -> str:
    arguments = ["token", "create", "demo", "--group", GROUP, "--uses", "5", "--expires-in", "1h"]
    say_command("fleetctl", *arguments)
    return fleetctl(*arguments, "-o", "name", show=False).strip()


def _choose_canary(fleetctl: Fleetctl) -> None:
    fleetctl("device", "canary", CANARY)
    wait_until(
        lambda: fleetctl("get", "devices", "-o", "json", show=False).count('"online"') >= 1 + len(SIMULATED),
        seconds=60,
        what="all five devices have reported",
        every=0.5,
    )
    fleetctl("get", "devices")


def _roll_out(stage: Stage, fleetctl: Fleetctl) -> int:
    data = stage.folder / "analysis"
    data.mkdir()
    fitted = example.fit((ROOT / example.PATH).read_text(), data=data, port=example.free_port(example.HOST_PORT))
    manifest = stage.folder / example.PATH.name
    manifest.write_text(fitted.text)
    say(f"Applying {example.PATH}, on this machine with " + " and ".join(fitted.changes))
    fleetctl("apply", "-f", str(manifest))
    code = fleetctl.live("watch", "deployment", "analysis-api", "--timeout", str(LIMIT_SECONDS))
    fleetctl("describe", "deployment", "analysis-api")
    return code


def _show_containers(stage: Stage) -> None:
    if stage.podman:
        columns = "table {{.Names}} {{.Image}} {{.Status}} {{.Ports}}"
        say_command("podman", "ps", "--all", "--format", f"'{columns}'")
        print(stage.podman.cli("ps", "--all", "--format", columns), flush=True)


def _show_logs(stage: Stage) -> None:
    for log in sorted(stage.folder.glob("logs/*.log")) + sorted(stage.folder.glob("devices/*/agent.log")):
        print(f"--- {log.name} of {log.parent.name} ---", *log.read_text(errors="replace").splitlines()[-15:], sep="\n")


def _stay(stage: Stage, server: str) -> None:
    say(f"The fleet is up. Look at {server}/admin/ (login {stage.admin}, password {stage.password}); Ctrl-C ends all.")
    while True:
        time.sleep(3600)


def _as_ctrl_c(*_: object) -> None:
    raise KeyboardInterrupt


def say(text: str) -> None:
    """A line of the narrator."""
    print(f"\n== {text}", flush=True)


def say_command(*words: str) -> None:
    """The command that is about to run, as a person would type it."""
    print(f"\n$ {' '.join(words)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
