"""A coordinator's own batches, as Kafka's coordinators write them."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.broker.coordination.shard_log import RecordFormat, ShardLog
from lamina.coordinators.decision import Producer
from lamina.errors import InvalidProducerEpoch, InvalidTransactionState
from lamina.log.lease import Lease
from lamina.records.batch import NO_SEQUENCE, BatchHeader, walk
from tests.broker.in_process import InProcessBroker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    opened = InProcessBroker(tmp_path / "data", {})
    opened.create("state")
    yield opened
    opened.close()


def shard_log(broker: InProcessBroker, base_sequence: int = 0) -> ShardLog[str]:
    record_format: RecordFormat[str] = RecordFormat(
        lambda record: (record.encode(), b"value"),
        lambda key, value: (key or b"").decode(),
        base_sequence=base_sequence,
    )
    return ShardLog(broker.parts.partitions.get("state", 0), record_format, broker.parts.threads)


def headers(log: ShardLog[str]) -> list[BatchHeader]:
    lease = log.partition.log.read(0, 1 << 20)
    assert lease is not None
    with lease:
        return [header for _, header in walk(memoryview(lease.read()))]


@pytest.mark.parametrize("base_sequence", [0, NO_SEQUENCE])
def test_every_batch_says_the_coordinators_sequence(broker: InProcessBroker, base_sequence: int) -> None:
    """Kafka 4.1: 0 in __consumer_offsets, -1 in __transaction_state, with a producer or without."""
    log = shard_log(broker, base_sequence)
    producers = log.partition.log.producers
    now_ms = broker.parts.clocks.now_ms()
    log.append(["a", "b"], None, now_ms)
    verification = producers.begin_verification(7, 2, base_sequence, now_ms, begins_at_zero=False)
    for _ in range(3):
        log.append(["c"], Producer(7, 2), now_ms, verification)
    written = [
        (header.producer_id, header.producer_epoch, header.base_sequence, header.is_transactional)
        for header in headers(log)
    ]
    assert written == [(-1, -1, base_sequence, False)] + [(7, 2, base_sequence, True)] * 3
    assert log.partition.last_stable_offset == 2


def test_a_producer_that_is_fenced_or_not_verified_writes_nothing(broker: InProcessBroker) -> None:
    log, now_ms = shard_log(broker), broker.parts.clocks.now_ms()
    with pytest.raises(InvalidTransactionState):
        log.append(["a"], Producer(7, 2), now_ms)
    producers = log.partition.log.producers
    verification = producers.begin_verification(7, 2, 0, now_ms, begins_at_zero=False)
    log.append(["a"], Producer(7, 2), now_ms, verification)
    log.partition.append_marker(7, 3, 0, is_commit=True, transaction_version=2, now_ms=now_ms)
    stale = producers.begin_verification(7, 2, 0, now_ms, begins_at_zero=False)
    with pytest.raises(InvalidProducerEpoch):
        log.append(["b"], Producer(7, 2), now_ms, stale)
    assert log.partition.log.log_end_offset == 2


def test_a_log_that_is_let_go_while_a_thread_reads_it_does_not_fail(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment that is not written any more closes its file when nobody reads it."""
    log = shard_log(broker)
    now_ms = broker.parts.clocks.now_ms()
    log.append(["a"], None, now_ms)
    log.partition.log.roll(now_ms)
    begun, may_read, read = threading.Event(), threading.Event(), Lease.read

    def read_late(lease: Lease) -> bytes:
        begun.set()
        may_read.wait(30)
        return read(lease)

    monkeypatch.setattr(Lease, "read", read_late)

    async def let_go() -> None:
        reading = asyncio.ensure_future(log.read_from(0))
        await asyncio.get_running_loop().run_in_executor(None, begun.wait, 30)
        reading.cancel()
        for _ in range(10):  # More turns than it takes to hear of that.
            await asyncio.sleep(0)
        may_read.set()
        await asyncio.wait((reading,))
        assert reading.cancelled()

    broker.finish(let_go())
    assert log.partition.log.failure is None
