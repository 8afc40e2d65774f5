"""A Redis server of our own on a free loopback port, with a password of its own and nothing on disk."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from pathlib import Path

import redis

from harness.ports import free_port
from harness.process import ManagedProcess
from harness.programs import program

_CONFIG = """\
bind 127.0.0.1
port {port}
requirepass {password}
save ""
appendonly no
dir {folder}
"""


class RedisServer:
    """A context manager; :meth:`start` and :meth:`stop` may alternate, the address stays and the content doesn't.

    Raises:
        ProgramMissing: when Redis is not installed.
    """

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="fleet-redis-"))
        self._password = secrets.token_hex(16)
        self._port = free_port()
        self._process: ManagedProcess | None = None

    def __enter__(self) -> RedisServer:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    @property
    def url(self) -> str:
        """The address for ``FLEET_REDIS_URL``."""
        return f"redis://:{self._password}@127.0.0.1:{self._port}/0"

    def start(self) -> None:
        if self.running:
            return
        config = self._folder / "redis.conf"
        config.touch(mode=0o600)
        config.write_text(_CONFIG.format(port=self._port, password=self._password, folder=self._folder))
        self._process = ManagedProcess("Redis", [program("redis-server"), config], log=self._folder / "redis.log")
        try:
            self._process.start(self._answers)
        except BaseException:
            self.close()
            raise

    def restart(self) -> None:
        """Serve again, with nothing in it."""
        self.stop()
        self.start()

    def stop(self) -> None:
        """End the server, as a broker that is gone; it can be started again."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def close(self) -> None:
        """End the server and remove its folder."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        with redis.Redis.from_url(self.url, socket_timeout=2) as client:
            try:
                return bool(client.ping())
            except redis.ConnectionError:
                return False
