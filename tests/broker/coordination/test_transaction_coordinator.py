"""Markers: when they are written, into what, and what a coordinator that loads makes of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lamina.broker.coordination import transaction_markers
from lamina.broker.coordination.shard_log import ShardLog
from lamina.broker.metadata.listener import MetadataListener
from lamina.broker.partitions.partition import Partition
from lamina.coordinators.decision import Producer
from lamina.coordinators.records.transaction_records import Status, TransactionRecord
from lamina.coordinators.replaying import History
from lamina.coordinators.transaction_requests import CLASSIC, AddPartitionsRequest
from lamina.errors import ErrorCode, MessageTooLarge, StorageError
from lamina.image.changes import create_topic, remove_topic
from lamina.image.topic import CONSUMER_OFFSETS, TRANSACTION_STATE
from lamina.log.flushing import Waiter
from lamina.wire.codec import SIZE_BYTES, encode_request
from lamina.wire.versions import request_schema
from tests.broker.in_process import InProcessBroker, build
from tests.broker.transacting import (
    BUMPING,
    DESCRIBE_TRANSACTIONS,
    END,
    FEW_PARTITIONS,
    Me,
    Transacting,
    committed,
    fetched_offset,
)

ONE_OF_EACH = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    opened = InProcessBroker(tmp_path / "data", FEW_PARTITIONS | ONE_OF_EACH)
    opened.create("t", partitions=2)
    yield opened
    opened.close()


@pytest.fixture
def orders(broker: InProcessBroker) -> Transacting:
    transacting = Transacting(broker)
    transacting.find()
    return transacting


class HeldFlusher:
    """Flushes only when it is told to."""

    def __init__(self, partition: Partition) -> None:
        self._flusher = partition._flusher
        self._waiting: list[tuple[int, Waiter | None]] = []
        partition.configure(replace(partition.log.config, flush_messages=1), 1 << 20)
        partition._flusher = self  # type: ignore[assignment]

    def flush_to(self, offset: int, waiter: Waiter | None = None) -> None:
        self._waiting.append((offset, waiter))

    def release(self) -> None:
        waiting, self._waiting = self._waiting, []
        for offset, waiter in waiting:
            self._flusher.flush_to(offset, waiter)


def open_transaction(orders: Transacting) -> Me:
    me = orders.started()
    assert orders.add(me, ("t", 0)) == [0]
    assert orders.produce(me, [b"a"]) == 0
    return me


def end_unanswered(orders: Transacting, me: Me) -> None:
    """EndTxn from a client that waits for a moment only."""
    facts = {"transactional_id": orders.id, "producer_id": me.id, "producer_epoch": me.epoch, "committed": True}
    frame = encode_request(build(request_schema(END, 3), facts), 1, "test")
    assert orders.broker.serve(frame[SIZE_BYTES:], wait_seconds=0.01) is None


def test_markers_wait_until_the_decision_is_on_disk(broker: InProcessBroker, orders: Transacting) -> None:
    me = open_transaction(orders)
    held = HeldFlusher(broker.parts.partitions.get(TRANSACTION_STATE, 0))
    end_unanswered(orders, me)
    partition = broker.parts.partitions.get("t", 0)
    shard = broker.parts.transactions.shard_of(orders.id)

    def decided() -> str:
        return shard.look(lambda machine: machine.describe(orders.id)).state

    assert (decided(), partition.log.log_end_offset) == ("PrepareCommit", 1)
    held.release()
    broker.run_until(lambda: partition.log.log_end_offset == 2)
    broker.run_until(lambda: decided() == "CompleteCommit")
    assert committed(broker) == [b"a"]


def test_a_transaction_is_complete_when_its_markers_are_on_disk(broker: InProcessBroker, orders: Transacting) -> None:
    me = open_transaction(orders)
    held = HeldFlusher(broker.parts.partitions.get("t", 0))
    assert orders.end(me, settled=False).code == 0
    assert (orders.state(), broker.parts.transactions.markers.pending) == ("PrepareCommit", 1)
    assert orders.add(me, ("t", 0)) == [ErrorCode.CONCURRENT_TRANSACTIONS]
    held.release()
    broker.settle()
    assert orders.state() == "CompleteCommit"


def test_a_marker_that_comes_while_a_shard_loads_is_not_lost(
    broker: InProcessBroker, orders: Transacting, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = orders.started()
    assert (orders.add_offsets(me), orders.commit_offset(me, 5)) == (0, 0)
    read = ShardLog.read_from
    ended: list[int] = []

    async def read_and_end(log: "ShardLog[object]", offset: int) -> History:
        history = await read(log, offset)
        if log.partition.topic == CONSUMER_OFFSETS and not ended:
            ended.append(offset)
            log.partition.append_marker(*me, 0, is_commit=True, transaction_version=0, now_ms=1)
        return history

    monkeypatch.setattr(ShardLog, "read_from", read_and_end)
    broker.restart()
    broker.settle()
    assert ended
    assert fetched_offset(broker, stable=True) == (5, 0)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_new_topic_by_the_name_of_a_deleted_one_gets_none_of_its_markers(
    broker: InProcessBroker, orders: Transacting, is_restarted: bool
) -> None:
    broker.create("u")
    me = orders.started()
    assert orders.add(me, ("t", 0), ("u", 0)) == [0, 0]
    assert (orders.produce(me, [b"a"]), orders.produce(me, [b"b"], topic="u")) == (0, 0)
    broker.delete("u")
    broker.create("u")
    if is_restarted:
        broker.restart()
        broker.settle()
    assert [(topic.topic, tuple(topic.partitions)) for topic in orders.describe().topics] == [("t", (0,))]
    assert orders.produce(me, [b"b"], 1, topic="u") == ErrorCode.TRANSACTION_ABORTABLE
    assert orders.end(me).code == 0
    assert orders.state() == "CompleteCommit"
    assert broker.parts.partitions.get("u", 0).log.log_end_offset == 0
    assert committed(broker) == [b"a"]


def test_a_partition_that_is_led_elsewhere_for_a_while_stays_online_and_gets_its_marker_later(
    broker: InProcessBroker, orders: Transacting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_markers, "_RETRY_SECONDS", 0)
    me = open_transaction(orders)
    partition = broker.parts.partitions.get("t", 0)
    leader, partition.leader = partition.leader, None
    assert orders.end(me, settled=False).code == 0
    assert (orders.state(), partition.log.failure) == ("PrepareCommit", None)
    partition.leader = leader
    broker.settle()
    assert orders.state() == "CompleteCommit"


def test_a_coordinator_that_loads_when_it_leads_no_more_leaves_its_partition_online(
    broker: InProcessBroker, orders: Transacting
) -> None:
    partition, shard = broker.parts.partitions.get(TRANSACTION_STATE, 0), broker.parts.transactions.runtime.shard(0)
    partition.leader = None
    shard.load()
    broker.run_until(lambda: shard.is_given_up)
    assert partition.log.failure is None


def test_what_is_deleted_while_its_marker_waits_is_skipped(broker: InProcessBroker, orders: Transacting) -> None:
    me = open_transaction(orders)
    broker.parts.partitions.get("t", 0).log.take_offline("it broke")
    assert orders.end(me, settled=False).code == 0
    assert orders.state() == "PrepareCommit"
    broker.delete("t")
    broker.settle()
    assert orders.state() == "CompleteCommit"


def test_a_transaction_that_was_being_ended_is_ended_after_a_restart(
    broker: InProcessBroker, orders: Transacting
) -> None:
    me = open_transaction(orders)
    broker.parts.partitions.get("t", 0).log.take_offline("it broke")
    assert orders.end(me, settled=False).code == 0
    broker.restart()
    broker.settle()
    assert orders.state() == "CompleteCommit"
    assert committed(broker) == [b"a"]
    assert orders.end(me).code == 0, "a repetition"


def test_many_partitions_get_their_markers_in_turns(broker: InProcessBroker, orders: Transacting) -> None:
    broker.create("wide", partitions=70)
    me = orders.started()
    assert set(orders.add(me, *[("wide", index) for index in range(70)])) == {0}
    assert orders.end(me, settled=False).code == 0
    assert broker.parts.transactions.markers.pending == 70
    broker.settle()
    assert {broker.parts.partitions.get("wide", index).log.log_end_offset for index in range(70)} == {1}


def test_an_exhausted_producer_gets_a_new_id(broker: InProcessBroker, orders: Transacting) -> None:
    me = orders.started(5)
    machine = broker.parts.transactions.shard_of(orders.id).machine
    assert machine is not None
    value = machine._values[orders.id]
    machine._values[orders.id] = value._replace(producer_epoch=32766)
    me = Me(me.id, 32766)
    after = orders.transact(me, [b"a"], BUMPING)
    assert after == Me(me.id + 1, 0)
    assert orders.end(me, version=5) == (0, after), "a repetition gets the same answer"
    after = orders.transact(after, [b"b"], BUMPING)
    assert (after.epoch, committed(broker)) == (1, [b"a", b"b"])


def test_a_transaction_ends_even_if_no_producer_id_can_be_had_for_a_while(
    broker: InProcessBroker, orders: Transacting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    me = orders.started(5)
    machine = broker.parts.transactions.shard_of(orders.id).machine
    assert machine is not None
    machine._values[orders.id] = machine._values[orders.id]._replace(producer_epoch=32766)
    assert orders.produce(Me(me.id, 32766), [b"a"], version=12) == 0
    next_id, failures = broker.parts.producer_ids.next, [OSError("the store is away"), StorageError("still away")]

    async def unreliable() -> int:
        if failures:
            raise failures.pop()
        return await next_id()

    monkeypatch.setattr(broker.parts.producer_ids, "next", unreliable)
    monkeypatch.setattr(transaction_markers, "_RETRY_SECONDS", 0)
    assert orders.init(5).code == ErrorCode.CONCURRENT_TRANSACTIONS
    broker.settle()
    assert (failures, orders.state()) == ([], "CompleteAbort")
    assert broker.parts.counters.unexpected.total() == 2
    assert caplog.text.count("no producer id") == 2
    assert orders.started(5).id != me.id


def test_a_transaction_whose_end_the_log_refuses_for_a_while_ends_later(
    broker: InProcessBroker, orders: Transacting, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = open_transaction(orders)
    shard, refusals = broker.parts.transactions.shard_of(orders.id), 2
    append = shard.log.append

    def refuse_the_end(records: Sequence[TransactionRecord], *more: Any, **how: Any) -> None:
        nonlocal refusals
        if refusals and records[0].value is not None and records[0].value.status is Status.COMPLETE_COMMIT:
            refusals -= 1
            raise MessageTooLarge("a test")
        append(records, *more, **how)

    monkeypatch.setattr(shard.log, "append", refuse_the_end)
    monkeypatch.setattr(transaction_markers, "_RETRY_SECONDS", 0)
    assert orders.end(me).code == 0
    assert (refusals, orders.state()) == (0, "CompleteCommit")


def test_a_transaction_that_runs_out_is_aborted(tmp_path: Path) -> None:
    quick = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1"}
    broker = InProcessBroker(tmp_path / "data", FEW_PARTITIONS | quick)
    broker.create("t")
    orders = Transacting(broker)
    orders.find()
    code, me = orders.init(timeout_ms=1)
    assert code == 0
    assert orders.add(me, ("t", 0)) == [0]
    broker.run_until(lambda: orders.state() == "CompleteAbort")
    assert orders.end(me).code == ErrorCode.PRODUCER_FENCED
    coordinator = broker.parts.transactions
    assert (coordinator.timed_out, coordinator.markers.written, coordinator.markers.pending) == (1, 1, 0)
    assert {status.state_name: count for status, count in coordinator.counts().items() if count} == {"CompleteAbort": 1}
    broker.close()


def test_nobody_coordinates_what_lives_in_a_log_that_is_offline(broker: InProcessBroker, orders: Transacting) -> None:
    me = open_transaction(orders)
    broker.parts.partitions.failed(TRANSACTION_STATE, 0, RuntimeError("no such luck"))
    described = broker.ask(DESCRIBE_TRANSACTIONS, 0, transactional_ids=[orders.id]).transaction_states[0]
    assert described.error_code == ErrorCode.NOT_COORDINATOR, "its memory may know what its log does not"
    assert orders.end(me, settled=False).code == ErrorCode.NOT_COORDINATOR


class AddsAtOnce(MetadataListener):
    """A producer that writes to a new topic as soon as it is led."""

    def __init__(self, orders: Transacting, me: Me) -> None:
        self._orders = orders
        self._me = me

    def partition_led(self, partition: Partition) -> None:
        if (partition.topic, partition.index) == ("t", 0):
            producer, added = Producer(self._me.id, self._me.epoch), frozenset({("t", 0)})
            request = AddPartitionsRequest(self._orders.id, producer, added, CLASSIC)
            shard = self._orders.broker.parts.transactions.shard_of(self._orders.id)
            shard.ask(lambda machine, waiter, now: machine.add_partitions(request, waiter, now))


def test_a_transaction_stays_in_a_new_topic_whose_name_another_had_until_now(
    broker: InProcessBroker, orders: Transacting
) -> None:
    """A broker that was held up learns at once that the one was deleted and the other made (KIP-516)."""
    me = orders.started()
    broker.parts.publisher.add_listener(AddsAtOnce(orders, me))

    old = broker.parts.metadata.image
    anew = create_topic(remove_topic(old, "t"), "t", bytes(16 * [7]), [(1,)])
    new = replace(anew, deletions={old.topics["t"].id: (1,)})
    broker.finish(broker.parts.loop.create_task(broker.parts.publisher.apply(old, new)))
    shard = broker.parts.transactions.shard_of(orders.id)
    assert shard.look(lambda machine: machine.describe(orders.id)).partitions == (("t", 0),)
    assert orders.end(me).code == 0
    assert broker.parts.partitions.get("t", 0).log.log_end_offset == 1, "it has its marker"
