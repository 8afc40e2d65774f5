"""The embedded default's broker: whole messages, each to one taker, whoever is quick or slow."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kombu import Connection, Exchange, Queue

import fleet.celery  # noqa: F401  (tells kombu of the scheme)

pytestmark = pytest.mark.clause("OPS-2")
QUEUE = Queue("bells", Exchange("bells", type="direct"), routing_key="bells")
WRITERS, EACH = 3, 150


def _connection(folder: Path) -> Connection:
    options = {
        "data_folder_in": str(folder / "queue"),
        "data_folder_out": str(folder / "queue"),
        "processed_folder": str(folder / "processed"),
        "control_folder": str(folder / "control"),
        "polling_interval": 0.001,
    }
    return Connection("folder://", transport_options=options)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    for part in ("queue", "processed", "control"):
        (tmp_path / part).mkdir()
    return tmp_path


def _write(folder: Path, writer: int) -> None:
    with _connection(folder) as connection, connection.Producer() as producer:
        for number in range(EACH):
            body = [writer, number]
            producer.publish(body, exchange=QUEUE.exchange, routing_key="bells", declare=[QUEUE], serializer="json")


def _take(folder: Path, taken: list[list[int]], number: int = WRITERS * EACH) -> None:
    """As a worker reads: an error ends it."""
    deadline = time.monotonic() + 60
    with _connection(folder) as connection, connection.SimpleQueue(QUEUE) as queue:
        while len(taken) < number and time.monotonic() < deadline:
            try:
                message = queue.get(block=False)
            except queue.Empty:
                time.sleep(0.0005)
                continue
            taken.append(message.payload)
            message.ack()


@contextmanager
def _writing(folder: Path, writers: int) -> Iterator[None]:
    """Processes of their own, as in an installation: kombu remembers bindings per process."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_write, args=(folder, writer)) for writer in range(writers)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.join(30)
            process.kill()


def test_a_reader_that_is_quicker_than_writers_gets_every_message_whole_and_once(folder: Path) -> None:
    taken: list[list[int]] = []
    with _writing(folder, WRITERS):
        _take(folder, taken)
    assert sorted(taken) == [[writer, number] for writer in range(WRITERS) for number in range(EACH)]
    assert not list((folder / "queue").iterdir())
    assert not list((folder / "processed").iterdir())


def test_a_torn_message_is_dropped_and_the_next_one_taken(folder: Path) -> None:
    (folder / "queue" / "0_torn.bells.msg").write_text('{"body": ')
    with _writing(folder, 1):
        pass
    taken: list[list[int]] = []
    _take(folder, taken, number=EACH)
    assert len(taken) == EACH
    assert not list((folder / "processed").iterdir())


def test_two_processes_that_bind_at_once_lose_no_binding(folder: Path) -> None:
    with _connection(folder) as connection:
        channels = [connection.channel(), connection.channel()]
        for index, channel in enumerate(channels * 2):
            channel._queue_bind("shared", "", "", f"queue-{index}")
        assert {entry.queue for entry in channels[0].get_table("shared")} == {f"queue-{n}" for n in range(4)}
