"""What readers of committed records are told: the last stable offset, and exactly what they have to skip."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from lamina.broker.counters import RequestCounters
from lamina.broker.partitions.partition import Partition
from lamina.broker.requests.request import Request, Response
from lamina.errors import ErrorCode, InvalidProducerEpoch, InvalidTransactionState, TransactionCoordinatorFenced
from lamina.records.batch import HEADER_BYTES
from lamina.records.record import Record, build_batch
from lamina.wire.codec import SIZE_BYTES, parse_response
from lamina.wire.fetch_request import FetchPartition, FetchRequest, FetchTopic
from tests.broker.in_process import InProcessBroker, NoSocket, joined

FETCH, FETCH_VERSION = 1, 12
LIST_OFFSETS = 2
COMMITTED = 1
FOR_EVER_MS = 2**31 - 1


class Transactions:
    """Writes into one partition as a producer with a coordinator would."""

    def __init__(self, broker: InProcessBroker) -> None:
        self._parts = broker.parts
        self.partition: Partition = broker.parts.partitions.get("t", 0)
        self._sequences: dict[tuple[int, int], int] = {}

    def write(self, producer_id: int, epoch: int = 0, value: bytes = b"v") -> int:
        """One record; returns its offset."""
        sequence = self._sequences.get((producer_id, epoch), 0)
        batch = build_batch(
            [Record(0, self._parts.clocks.now_ms(), b"k", value)],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        now_ms = self._parts.clocks.now_ms()
        producers = self.partition.log.producers
        verification = producers.begin_verification(producer_id, epoch, sequence, now_ms, begins_at_zero=False)
        appended = self.partition.append_own(batch, now_ms, verification)
        self._sequences[producer_id, epoch] = sequence + 1
        return appended.first_offset

    def end(self, producer_id: int, epoch: int = 0, *, commit: bool, version: int = 0, coordinator: int = 0) -> None:
        self.partition.append_marker(
            producer_id,
            epoch,
            coordinator,
            is_commit=commit,
            transaction_version=version,
            now_ms=self._parts.clocks.now_ms(),
        )


@pytest.fixture
def transactions(broker: InProcessBroker) -> Transactions:
    broker.create("t")
    return Transactions(broker)


def read(
    broker: InProcessBroker, offset: int, *, limit_bytes: int = 1 << 20, session: tuple[int, int] = (0, -1)
) -> Any:
    asked = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": limit_bytes, "current_leader_epoch": -1}
    asked |= {"last_fetched_epoch": -1, "log_start_offset": -1}
    return broker.ask(
        FETCH,
        FETCH_VERSION,
        replica_id=-1,
        max_wait=0,
        min_bytes=0,
        max_bytes=1 << 20,
        isolation_level=COMMITTED,
        session_id=session[0],
        session_epoch=session[1],
        topics=[{"topic": "t", "partitions": [asked]}],
    )


def aborted(response: Any) -> list[tuple[int, int]]:
    (partition,) = response.responses[0].partitions
    return [(each.producer_id, each.first_offset) for each in partition.aborted_transactions]


def latest(broker: InProcessBroker, isolation_level: int, timestamp: int = -1) -> int:
    asked = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": -1}
    response = broker.ask(
        LIST_OFFSETS,
        7,
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[{"name": "t", "partitions": [asked]}],
    )
    found = response.topics[0].partitions[0]
    assert found.error_code == 0
    return int(found.offset)


# The last stable offset


def test_an_open_transaction_holds_back_committed_readers_only(
    broker: InProcessBroker, transactions: Transactions
) -> None:
    broker.produce("t", 2)
    transactions.write(7)
    broker.produce("t", 1)
    assert (latest(broker, 0), latest(broker, COMMITTED)) == (4, 2)
    (partition,) = read(broker, 0).responses[0].partitions
    assert (partition.high_watermark, partition.last_stable_offset) == (4, 2)
    assert len(bytes(partition.records)) == _bytes_of(transactions.partition, 0, 2)
    assert latest(broker, COMMITTED, timestamp=-3) < 2
    assert latest(broker, 0, timestamp=broker.parts.clocks.now_ms() + 60_000) == -1
    transactions.end(7, commit=True)
    assert (latest(broker, 0), latest(broker, COMMITTED)) == (5, 5)


def _bytes_of(partition: Partition, start: int, end: int) -> int:
    lease = partition.log.read(start, 1 << 20, end)
    assert lease is not None
    with lease:
        return lease.size_bytes


def test_the_oldest_open_transaction_counts(broker: InProcessBroker, transactions: Transactions) -> None:
    transactions.write(7)
    transactions.write(8)
    transactions.end(7, commit=True)
    assert transactions.partition.last_stable_offset == 1
    transactions.end(8, commit=False)
    assert transactions.partition.last_stable_offset == 4


def test_the_last_stable_offset_is_never_below_the_log_start(
    broker: InProcessBroker, transactions: Transactions
) -> None:
    """A transaction that is open may have lost its first records to DeleteRecords."""
    transactions.write(7)
    broker.produce("t", 4)
    assert transactions.partition.last_stable_offset == 0
    transactions.partition.log.advance_log_start(3)
    assert transactions.partition.last_stable_offset == 3


def test_an_open_transaction_holds_back_after_a_restart_too(
    broker: InProcessBroker, transactions: Transactions
) -> None:
    broker.produce("t", 1)
    transactions.write(7)
    broker.restart()
    again = Transactions(broker)
    assert again.partition.last_stable_offset == 1
    assert again.partition.log.producers.has_open(7, 0)
    again.end(7, commit=False)
    assert again.partition.last_stable_offset == 3
    assert aborted(read(broker, 0)) == [(7, 1)]


# Aborted transactions


def test_exactly_the_aborted_transactions_in_what_is_read_are_told(
    broker: InProcessBroker, transactions: Transactions
) -> None:
    """Offsets: 0 of 7, 1 of 8, 2 abort of 7, 3 of 9, 4 commit of 9, 5 of 10, 6 abort of 10, 7 abort of 8."""
    transactions.write(7)
    transactions.write(8)
    transactions.end(7, commit=False)
    transactions.write(9)
    transactions.end(9, commit=True)
    transactions.write(10)
    transactions.end(10, commit=False)
    transactions.end(8, commit=False)
    transactions.write(11)
    assert sorted(aborted(read(broker, 0))) == [(7, 0), (8, 1), (10, 5)]
    assert sorted(aborted(read(broker, 3))) == [(8, 1), (10, 5)]
    assert aborted(read(broker, 7)) == [(8, 1)]
    one_batch = HEADER_BYTES
    assert aborted(read(broker, 0, limit_bytes=one_batch)) == [(7, 0)]
    assert sorted(aborted(read(broker, 1, limit_bytes=one_batch))) == [(7, 0), (8, 1)]
    assert sorted(aborted(read(broker, 4, limit_bytes=one_batch))) == [(8, 1)]
    assert sorted(aborted(read(broker, 5, limit_bytes=one_batch))) == [(8, 1), (10, 5)]
    assert aborted(read(broker, 8)) == []


def test_aborted_transactions_are_told_across_segments(broker: InProcessBroker, transactions: Transactions) -> None:
    log = transactions.partition.log
    transactions.write(7)
    log.roll(broker.parts.clocks.now_ms())
    transactions.write(8)
    transactions.end(8, commit=True)
    log.roll(broker.parts.clocks.now_ms())
    transactions.end(7, commit=False)
    assert aborted(read(broker, 0)) == [(7, 0)]
    assert aborted(read(broker, 1)) == [(7, 0)]


def test_a_session_tells_aborted_transactions_too(broker: InProcessBroker, transactions: Transactions) -> None:
    transactions.write(7)
    opened = read(broker, 0, session=(0, 0))
    assert opened.session_id > 0
    assert aborted(opened) == []
    transactions.end(7, commit=False)
    assert aborted(read(broker, 0, session=(opened.session_id, 1))) == [(7, 0)]


def test_an_empty_transaction_that_is_aborted_is_told_to_nobody(
    broker: InProcessBroker, transactions: Transactions
) -> None:
    transactions.end(7, commit=False)
    transactions.write(8)
    transactions.end(8, commit=True)
    assert aborted(read(broker, 0)) == []
    assert transactions.partition.last_stable_offset == 3


# Markers


def test_a_marker_may_be_written_again(transactions: Transactions) -> None:
    transactions.write(7)
    for _ in range(2):
        transactions.end(7, commit=False)
    assert len(transactions.partition.log.segments.aborted_between(0, 9)) == 1
    transactions.write(8)
    for _ in range(2):
        transactions.end(8, 1, commit=True, version=2)
    assert transactions.partition.log.log_end_offset == 5


def test_the_hook_is_told_of_each_marker_once_it_is_written(transactions: Transactions) -> None:
    told: list[tuple[int, int, bool, int]] = []
    partition = transactions.partition
    partition.on_marker = lambda producer_id, epoch, is_commit: told.append(
        (producer_id, epoch, is_commit, partition.last_stable_offset)
    )
    transactions.write(7)
    transactions.end(7, 1, commit=True, version=2)
    transactions.write(8)
    transactions.end(8, commit=False)
    assert told == [(7, 1, True, 2), (8, 0, False, 4)]


def test_markers_of_fenced_coordinators_and_late_ones_are_refused(transactions: Transactions) -> None:
    transactions.write(7, 1)
    transactions.end(7, 2, commit=True, version=2, coordinator=5)
    transactions.write(7, 2)
    with pytest.raises(InvalidProducerEpoch):
        transactions.end(7, 2, commit=False, version=2, coordinator=5)
    with pytest.raises(InvalidProducerEpoch):
        transactions.end(7, 1, commit=False, coordinator=5)
    with pytest.raises(TransactionCoordinatorFenced):
        transactions.end(7, 3, commit=False, version=2, coordinator=4)
    assert transactions.partition.last_stable_offset == 2


def test_a_coordinator_writes_into_a_transaction_only_if_it_was_verified(broker: InProcessBroker) -> None:
    broker.create("t")
    partition = broker.parts.partitions.get("t", 0)
    record = Record(0, broker.parts.clocks.now_ms(), b"k", b"v")
    batch = build_batch([record], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    with pytest.raises(InvalidTransactionState):
        partition.append_own(batch, broker.parts.clocks.now_ms())
    assert partition.log.log_end_offset == 0


# Waiting


def waiting_reader(broker: InProcessBroker, offset: int, min_bytes: int = 1) -> "asyncio.Future[Response]":
    asked = FetchTopic("t", None, [FetchPartition(0, -1, offset, -1, -1, 1 << 20)])
    message = FetchRequest(-1, -1, FOR_EVER_MS, min_bytes, 1 << 20, COMMITTED, 0, -1, [asked], [], "")
    request = Request(FETCH, FETCH_VERSION, 1, None, NoSocket(), RequestCounters("Fetch", FETCH_VERSION))
    waiting = broker.fetch(request, message)
    assert isinstance(waiting, Awaitable)
    return asyncio.ensure_future(waiting, loop=broker.parts.loop)


def turns(broker: InProcessBroker, count: int = 5) -> None:
    async def pass_turns() -> None:
        for _ in range(count):
            await asyncio.sleep(0)

    broker.parts.loop.run_until_complete(pass_turns())


def answered(broker: InProcessBroker, waiting: "asyncio.Future[Response]") -> Any:
    pieces = broker.parts.loop.run_until_complete(asyncio.wait_for(waiting, 10))
    assert pieces is not None
    return parse_response(FETCH, FETCH_VERSION, joined(pieces)[SIZE_BYTES:])[1].responses[0].partitions[0]


@pytest.mark.parametrize("commit", [True, False])
def test_a_waiting_reader_sleeps_through_an_open_transaction_and_wakes_at_its_end(
    broker: InProcessBroker, transactions: Transactions, commit: bool
) -> None:
    """The first record comes between the reader's look and its wait."""
    waiting = waiting_reader(broker, 0)
    for _ in range(3):
        transactions.write(7)
        turns(broker)
        assert not waiting.done()
    transactions.end(7, commit=commit)
    fetched = answered(broker, waiting)
    assert (fetched.last_stable_offset, fetched.high_watermark) == (4, 4)
    assert len(bytes(fetched.records)) == _bytes_of(transactions.partition, 0, 4)
    assert [each.first_offset for each in fetched.aborted_transactions] == ([] if commit else [0])


def test_a_marker_makes_enough_readable_though_it_is_small(broker: InProcessBroker, transactions: Transactions) -> None:
    waiting = waiting_reader(broker, 0, min_bytes=1000)
    turns(broker)
    transactions.write(7, value=bytes(2000))
    turns(broker)
    assert not waiting.done()
    transactions.end(7, commit=True)
    assert len(bytes(answered(broker, waiting).records)) > 2000


def test_a_reader_that_still_finds_too_little_goes_on_waiting(
    broker: InProcessBroker, transactions: Transactions
) -> None:
    waiting = waiting_reader(broker, 0, min_bytes=1000)
    turns(broker)
    transactions.write(7)
    transactions.end(7, commit=True)
    turns(broker)
    assert not waiting.done()
    transactions.partition.release_all()
    assert answered(broker, waiting).error_code == ErrorCode.NONE
