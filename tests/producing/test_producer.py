"""A producer against a leader that answers as slowly, and refuses as much, as a test wants."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lamina.errors import ErrorCode
from lamina.peer.cluster import ClusterClient
from lamina.peer.retries import Backoff
from lamina.peer.transacting import Producer
from lamina.producing.errors import DeliveryFailed
from lamina.producing.producer import Batch, BatchProducer, DeliveryLimits
from lamina.records.batch import NO_SEQUENCE, Codec, walk
from lamina.records.record import Record, build_batch, read_records
from tests.peer.clients import MIB, NOW_MS, client
from tests.peer.loops import SkippingLoop, run
from tests.peer.scripted import METADATA, PRODUCE, Facts, ScriptedBroker

TOPIC = "orders"
BACKOFF = Backoff(1, 1, lambda: 0.5)
PRODUCER = Producer(7, 3)


class Leader(ScriptedBroker):
    """Of the one partition there is. It knows the sequences of one producer."""

    def __init__(self, max_message_bytes: int = MIB) -> None:
        super().__init__({METADATA: self._metadata, PRODUCE: self._produce})
        self.max_message_bytes = max_message_bytes
        self.before: Callable[[int], int] = lambda number: ErrorCode.NONE
        """What happens before it looks at a request, told how many there were."""
        self.records: list[Record] = []
        self.requests = 0
        self.too_large = 0

    def _metadata(self, request: Any) -> Facts:
        endpoint = {"node_id": 1, "host": self.address.host, "port": self.address.port}
        topics = [{"name": one.name, "partitions": [{"leader_id": 1}]} for one in request.topics]
        return {"brokers": [endpoint], "controller_id": 1, "topics": topics}

    def _produce(self, request: Any) -> Facts:
        self.requests += 1
        error = self.before(self.requests) or self._append(request.topic_data[0].partition_data[0].records)
        return {"responses": [{"name": TOPIC, "partition_responses": [{"error_code": error}]}]}

    def _append(self, records: Any) -> int:
        data = memoryview(records)
        ((_, header),) = walk(data)
        if len(data) > self.max_message_bytes:
            self.too_large += 1
            return ErrorCode.MESSAGE_TOO_LARGE
        if header.base_sequence not in (NO_SEQUENCE, len(self.records)):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        self.records += read_records(data, 0, header, 64 * MIB)
        return ErrorCode.NONE


def batches(count: int, records: int, size: int, **facts: Any) -> list[Batch]:
    """Values that tell their numbers, each of this size."""
    found = []
    for first in range(0, count * records, records):
        mine = [
            Record(number - first, NOW_MS + number, b"%d" % number, b"%d" % number * size, ((b"h", None),))
            for number in range(first, first + records)
        ]
        found.append(Batch(TOPIC, 0, records, build_batch(mine, base_sequence=first if facts else -1, **facts)))
    return found


def produce(leader: Leader, sent: list[Batch], **limits: Any) -> None:
    async def scenario(loop: SkippingLoop) -> None:
        async with leader, client(str(leader.address)) as cluster:
            await _produce(cluster)

    async def _produce(cluster: ClusterClient) -> None:
        producer = BatchProducer(cluster, BACKOFF, DeliveryLimits(**limits))
        try:
            await producer.send(sent)
            await producer.flush()
        finally:
            await producer.stop()

    run(scenario)


IDEMPOTENT = {"producer_id": PRODUCER.id, "producer_epoch": PRODUCER.epoch, "is_transactional": True}


def test_the_time_for_a_batch_begins_when_there_is_memory_for_it() -> None:
    leader = Leader()

    def before(number: int) -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SkippingLoop)
        loop.skip(20)
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if number == 4 else ErrorCode.NONE

    leader.before = before
    produce(leader, batches(4, 1, 1), buffer_bytes=1, delivery_timeout_ms=50_000)
    assert [record.key for record in leader.records] == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("facts", [{}, IDEMPOTENT, IDEMPOTENT | {"codec": Codec.ZSTD}], ids=["plain", "exact", "zstd"])
def test_batches_that_are_too_large_for_their_topic_are_split(facts: Facts) -> None:
    leader = Leader(max_message_bytes=700)
    sent = batches(30, 16, 200, **facts)
    wanted = [record for one in sent for record in read_records(one.data, 0, next(walk(one.data))[1], MIB)]
    produce(leader, sent)
    assert [replace(one, offset=0) for one in leader.records] == [replace(one, offset=0) for one in wanted]
    assert leader.too_large <= 20, "what is known to be too large is not sent"


def test_a_record_that_is_too_large_is_told() -> None:
    leader = Leader(max_message_bytes=700)
    sent = batches(1, 4, 10, **IDEMPOTENT)
    sent.append(batches(5, 1, 2000, **IDEMPOTENT)[4])
    with pytest.raises(DeliveryFailed, match=r"orders-0: 1 record could not be written: .*MESSAGE_TOO_LARGE"):
        produce(leader, sent)
    assert len(leader.records) == 4
