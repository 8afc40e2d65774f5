"""A container image for machines that have no registry."""

from __future__ import annotations

import shutil
import subprocess

from harness.programs import program
from harness.vm.nspawn import Machine

TAR = "/srv/web.tar"


def import_web(machine: Machine) -> None:
    """Give the agent's Podman ``localhost/web:1.0``, which serves its own files at port 8080."""
    folder = machine.root / "root/image"
    folder.mkdir()
    shutil.copy(program("busybox"), folder / "busybox")
    packed = str(machine.root / TAR.lstrip("/"))
    subprocess.run(["tar", "--create", "--file", packed, "--directory", str(folder), "busybox"], check=True)
    as_agent = ["setpriv", "--reuid=harmony-fleet", "--regid=harmony-fleet", "--init-groups", "--"]
    podman = ["podman", "--remote", "--url", "unix:///run/harmony-fleet-podman/podman.sock"]
    # The first process of a container ignores signals that it has not asked for; systemd would wait 90 s for its end.
    script = "trap exit TERM; /busybox httpd -f -p 8080 -h / & wait"
    serve = f'CMD ["/busybox", "sh", "-c", "{script}"]'
    machine.run(*as_agent, *podman, "import", "--change", serve, TAR, "localhost/web:1.0")
