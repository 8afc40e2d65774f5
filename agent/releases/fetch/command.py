"""``fleet-updater fetch``: one job, as the agent's user; the updater starts it in a unit of its own."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec

from agent import config as configuration
from agent.clock import SystemClock
from agent.config import Config, ConfigError
from agent.releases.fetch.client import Client, Surroundings, origin
from agent.releases.fetch.errors import FetchError
from agent.releases.fetch.fetching import Fetching, Pauses
from agent.releases.job import FetchJob
from agent.store import Store
from agent.wire.artifacts import url_problem

DONE, FAILED, WRONG_USE = 0, 1, 2
MAX_JOB_BYTES = 65_536


def main(job_file: Path, agent_config: Path, pauses: Pauses | None = None) -> int:
    """0: the archive is there, whole; 1: it is not, and the last line says why; 2: called wrongly."""
    try:
        job = _job(job_file)
        client = Client(_surroundings(agent_config))
        Fetching(client, pauses or Pauses(SystemClock(), time.sleep), _say).run(job.target, Path(job.archive))
    except (ConfigError, ValueError) as error:
        return _complain(str(error), WRONG_USE)
    except FetchError as error:
        return _complain(str(error), FAILED)
    except OSError as error:
        return _complain(f"{error.filename or 'the archive'}: {error.strerror}", FAILED)
    _say(f"fetched {job.target.version}")
    return DONE


def _job(path: Path) -> FetchJob:
    """Raises ValueError when it is none."""
    with path.open("rb") as file:
        data = file.read(MAX_JOB_BYTES + 1)
    if len(data) > MAX_JOB_BYTES:
        raise ValueError(f"{path} has more than {MAX_JOB_BYTES:,} bytes")
    job = msgspec.json.decode(data, type=FetchJob)
    if problem := url_problem(job.target.url):
        raise ValueError(f"{path}: the address {problem}")
    return job


def _surroundings(agent_config: Path) -> Surroundings:
    """As the agent reaches its control plane; a device that is not enrolled yet has no credential to show."""
    if not agent_config.exists():
        return Surroundings()
    config: Config = configuration.load(agent_config)
    credential = Store(config.state_dir).credential()
    credentials = {origin(config.server.url): credential} if credential else {}
    return Surroundings(config.server.ca_file, config.server.proxy, credentials)


def _say(words: str) -> None:
    print(words, flush=True)


def _complain(message: str, code: int) -> int:
    print(" ".join(message.split()), file=sys.stderr, flush=True)
    return code
