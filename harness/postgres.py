"""A PostgreSQL server of our own: a temporary folder, a Unix socket, no port, gone without a trace."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

import psycopg

from harness.process import ManagedProcess
from harness.programs import program

_USER = "fleet"
#: The account that runs the server when we are root, because PostgreSQL refuses root. Debian's package makes it.
_UNPRIVILEGED = "postgres"
#: No autovacuum, because statistics from when tables were small make plans that take minutes once they are large.
_QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off")


class PostgresServer:
    """A server in ``folder``, a short path of a folder that is made and removed by us; a context manager.

    ``durable=False`` trades what a power loss would cost for speed: right for tests, wrong for benchmarks.

    Raises:
        ProgramMissing: when PostgreSQL is not installed.
    """

    def __init__(self, folder: Path | None = None, *, durable: bool = False) -> None:
        # Not below pytest's folders: those are closed to the account that runs the server.
        self.folder = folder or Path(tempfile.mkdtemp(prefix="fleet-pg-"))
        self._durable = durable
        self._process: ManagedProcess | None = None

    def __enter__(self) -> PostgresServer:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    def url(self, database: str = "fleet") -> str:
        """The address for ``FLEET_DATABASE_URL``; known before the server runs."""
        return f"postgres://{_USER}@{quote(str(self.folder), safe='')}/{database}"

    def start(self) -> None:
        """Make the cluster with an empty database ``fleet`` and serve it; nothing when it runs already."""
        if self.running:
            return
        try:
            self._initialise()
            self._serve()
            self.create_database("fleet")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the server and remove the folder."""
        if self._process is not None:
            # SIGQUIT is PostgreSQL's immediate shutdown: it waits for no client, and the data is thrown away.
            self._process.stop(signal.SIGQUIT)
            self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def create_database(self, name: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name)))

    def _initialise(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        user = _server_account()
        if user:
            os.chown(self.folder, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        command = [str(program("initdb")), "--pgdata", str(self.folder / "data"), "--username", _USER, "--auth=trust"]
        options = ["--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"]
        made = subprocess.run(
            [*command, *options], user=user, cwd=self.folder, capture_output=True, text=True, check=False
        )
        if made.returncode != 0:
            raise RuntimeError(f"initdb failed with code {made.returncode}: {made.stdout}{made.stderr}")

    def _serve(self) -> None:
        settings = [f"unix_socket_directories={self.folder}", "listen_addresses=", "max_connections=100"]
        settings += () if self._durable else _QUICK
        command: list[str | Path] = [program("postgres"), "-D", self.folder / "data"]
        for setting in settings:
            command += ["-c", setting]
        self._process = ManagedProcess(
            "PostgreSQL", command, log=self.folder / "server.log", cwd=self.folder, user=_server_account()
        )
        self._process.start(self._answers)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


def _server_account() -> str | None:
    return _UNPRIVILEGED if os.geteuid() == 0 else None
