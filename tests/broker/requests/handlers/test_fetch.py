import asyncio
import errno
import os
import threading
from typing import Any

import pytest

from lamina.errors import ErrorCode
from lamina.log.files import File
from tests.broker.in_process import InProcessBroker

FETCH = 1


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (5, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (6, ErrorCode.KAFKA_STORAGE_ERROR),
        (12, ErrorCode.KAFKA_STORAGE_ERROR),
        (13, ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
def test_r23_an_unexpected_error_takes_the_partition_offline_that_was_read(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, version: int, code: ErrorCode
) -> None:
    """Clients of old versions know no storage error: they look for another leader."""
    broker.create("t")
    partition = broker.parts.partitions.get("t", 0)

    def fail(*_given: Any) -> None:
        raise RuntimeError("a test")

    monkeypatch.setattr(partition.log, "read", fail)
    asked = {"partition": 0, "current_leader_epoch": -1, "last_fetched_epoch": -1, "partition_max_bytes": 1000}
    topic = {"topic": "t", "topic_id": partition.topic_id, "partitions": [asked]}
    for _ in range(2):
        response = broker.ask(FETCH, version, max_bytes=1000, session_epoch=-1, topics=[topic])
        assert response.responses[0].partitions[0].error_code == code
    assert partition.log.failure is not None
    assert partition.log.failure.startswith("t-0 is offline")


@pytest.mark.parametrize("operation", ["load", "pread", "read_cached"])
def test_a_range_that_the_disk_cannot_read_takes_the_directory_offline(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """A disk error is final wherever it is met: on the thread that reads what is not cached, or on the loop."""
    broker.create("t")
    broker.create("other")
    broker.produce("t", 3)
    if operation == "pread":
        broker.produce("t", 3)  # The last batch is found without it.
    partition = broker.parts.partitions.get("t", 0)

    def fail(*_given: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(File, "read_cached", lambda *_: None)
    monkeypatch.setattr(File, "is_cached", lambda *_: False)
    monkeypatch.setattr(File, operation, fail)
    asked = {"partition": 0, "current_leader_epoch": -1, "last_fetched_epoch": -1, "partition_max_bytes": 1000}
    topic = {"topic": "t", "topic_id": partition.topic_id, "partitions": [asked]}
    response = broker.ask(FETCH, 12, max_bytes=1000, session_epoch=-1, topics=[topic])
    assert response.responses[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert partition.log.failure is not None
    assert "the log directory" in str(broker.parts.partitions.get("other", 0).log.failure)


def test_a_client_that_hangs_up_while_a_thread_reads_for_it_takes_nothing_offline(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment that is not written any more closes its file when nobody reads it."""
    broker.create("t")
    broker.produce("t", 3)
    partition = broker.parts.partitions.get("t", 0)
    partition.log.roll(broker.parts.clocks.now_ms())
    begun, may_load, ended, load = threading.Event(), threading.Event(), threading.Event(), File.load

    def load_late(file: File, position: int, size_bytes: int) -> None:
        begun.set()
        may_load.wait(30)
        try:
            load(file, position, size_bytes)
        finally:
            ended.set()

    monkeypatch.setattr(File, "read_cached", lambda *_: None)
    monkeypatch.setattr(File, "is_cached", lambda *_: False)
    monkeypatch.setattr(File, "load", load_late)
    asked = {"partition": 0, "current_leader_epoch": -1, "last_fetched_epoch": -1, "partition_max_bytes": 1000}
    topic = {"topic": "t", "topic_id": partition.topic_id, "partitions": [asked]}
    answering = broker.begin(FETCH, 12, max_bytes=1000, session_epoch=-1, topics=[topic])

    async def hang_up() -> None:
        await asyncio.get_running_loop().run_in_executor(None, begun.wait, 30)
        answering.cancel()
        for _ in range(10):  # More turns than it takes to hear of that.
            await asyncio.sleep(0)
        may_load.set()
        await asyncio.wait((answering,))
        assert answering.cancelled()
        await asyncio.get_running_loop().run_in_executor(None, ended.wait, 30)
        broker.parts.threads.close()

    broker.finish(hang_up())
    assert partition.log.failure is None
