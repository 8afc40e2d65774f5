from __future__ import annotations

import hashlib
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from agent.releases.fetch.command import main
from agent.releases.fetch.fetching import Pauses
from agent.releases.job import FetchJob
from agent.wire.manifest import AgentUpgrade
from tests.support.authority import Authority
from tests.support.devices import ManualClock
from tests.support.file_server import FileServer

CONTENT = b"".join(hashlib.sha256(bytes([step % 256, step // 256])).digest() for step in range(21_875))  # 700,000 bytes
#: How the servers are called where a proxy knows them.
WEB_NAME = "web.example"
CREDENTIAL = "the-device-s-own-credential"


@dataclass(frozen=True)
class Outcome:
    """How the command ended; ``why`` is the last line of its errors."""

    code: int
    out: str
    why: str


@dataclass
class Device:
    """A device that fetches one archive, as ``fleet-updater fetch`` does; it waits for nothing, its clock goes on."""

    folder: Path
    capture: pytest.CaptureFixture[str]
    server: str = "https://fleet.example"
    ca_file: Path | str = ""
    proxy: str = ""
    slept: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / "state").mkdir()
        (self.folder / "state" / "credential").write_text(CREDENTIAL)
        self._clock = ManualClock()

    @property
    def archive(self) -> Path:
        return self.folder / "archive"

    def job(self, url: str, content: bytes = CONTENT, **changes: object) -> tuple[Path, Path]:
        """The job file, and the agent's configuration."""
        fields = {
            "version": "2.0.0",
            "architecture": "amd64",
            "url": url,
            "maxSize": 10_000_000,
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        job, config = self.folder / "job.json", self.folder / "agent.toml"
        target = msgspec.convert(fields | changes, AgentUpgrade)
        job.write_bytes(msgspec.json.encode(FetchJob(target, str(self.archive))))
        config.write_text(
            f'[server]\nurl = "{self.server}"\nca_file = "{self.ca_file}"\nproxy = "{self.proxy}"\n'
            f'[device]\nid = "edge-1"\n[agent]\nstate_dir = "{self.folder / "state"}"\n'
        )
        return job, config

    def fetch(self, url: str, content: bytes = CONTENT, **changes: object) -> Outcome:
        self.capture.readouterr()
        code = main(*self.job(url, content, **changes), Pauses(self._clock, self._sleep))
        said = self.capture.readouterr()
        return Outcome(code, said.out, said.err.strip().splitlines()[-1] if said.err else "")

    def has(self, content: bytes) -> bool:
        return self.archive.read_bytes() == content

    def holds(self, size: int) -> Callable[[], bool]:
        """Whether so many bytes of it are there."""
        return lambda: self.archive.exists() and self.archive.stat().st_size == size

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._clock.forward(seconds)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def device(tmp_path: Path, capsys: pytest.CaptureFixture[str], authority: Authority) -> Device:
    return Device(tmp_path, capsys, ca_file=authority.ca_file)


@pytest.fixture(scope="session")
def encrypted(authority: Authority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("127.0.0.1", WEB_NAME))
    return context


@pytest.fixture
def web(encrypted: ssl.SSLContext) -> Iterator[FileServer]:
    with FileServer(CONTENT, encrypted) as server:
        yield server


@pytest.fixture
def elsewhere(encrypted: ssl.SSLContext) -> Iterator[FileServer]:
    with FileServer(CONTENT, encrypted) as server:
        yield server
