"""Producing, and committing from elsewhere, against real brokers: what readers of committed records see."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from lamina.errors import InvalidTransactionTimeout
from lamina.peer.cluster import ClusterClient
from lamina.peer.retries import Backoff
from lamina.peer.transacting import Producer
from lamina.producing.attempting import open_attempt
from lamina.producing.committing import abort_batch, commit_batch
from lamina.producing.decisions import BatchName, OpenTransaction, QueryState, Slot, Status, without_pool
from lamina.producing.errors import DeliveryFailed, WriteError
from lamina.producing.producer import Batch, BatchProducer, DeliveryLimits
from lamina.producing.query_ledger import QueryLedger
from lamina.producing.transactions import Transactions
from lamina.records.batch import walk
from lamina.records.record import Record, build_batch
from lamina.wire.fetch_request import READ_COMMITTED, READ_UNCOMMITTED
from tests.arrow.topics import create as create_with_configs
from tests.broker.process import BrokerProcess
from tests.broker.transacting import seen_by_readers
from tests.peer.clients import MIB, NOW_MS, client, create

PREFIX, DECISIONS = "sink", "decisions"
BACKOFF = Backoff(10, 100, lambda: 0.5)
TIMEOUT_MS = 60_000
BUMPS = pytest.mark.parametrize("bumps", [False, True], ids=["classic", "bumping"])


def run(servers: str, scenario: Callable[[ClusterClient], Awaitable[None]]) -> None:
    async def main() -> None:
        async with client(servers) as cluster:
            await scenario(cluster)

    asyncio.run(main())


def batches(topic: str, values: list[bytes], producer: Producer | None = None, *, sequence: int = 0) -> list[Batch]:
    """One a value."""
    return [
        Batch(
            topic,
            0,
            1,
            build_batch(
                [Record(0, NOW_MS, None, value)],
                producer_id=-1 if producer is None else producer.id,
                producer_epoch=-1 if producer is None else producer.epoch,
                base_sequence=-1 if producer is None else sequence + number,
                is_transactional=producer is not None,
            ),
        )
        for number, value in enumerate(values)
    ]


async def seen(cluster: ClusterClient, topic: str, isolation_level: int = READ_COMMITTED) -> list[bytes]:
    """All of it, segment by segment."""
    data, offset = b"", 0
    aborted: dict[tuple[int, int], Any] = {}
    while True:
        fetched = await cluster.fetch(topic, 0, offset, max_bytes=MIB, max_wait_ms=0, isolation_level=isolation_level)
        aborted |= {(one.producer_id, one.first_offset): one for one in fetched.aborted_transactions}
        if not len(fetched.records):
            return seen_by_readers(data, aborted.values())
        data += bytes(fetched.records)
        offset = [header.next_offset for _, header in walk(fetched.records)][-1]


async def until_seen(cluster: ClusterClient, topic: str, wanted: list[bytes]) -> None:
    """Markers are written after the end of a transaction is confirmed."""
    async with asyncio.timeout(30):
        while sorted(await seen(cluster, topic)) != wanted:
            await asyncio.sleep(0)


class Query:
    """One run of a query whose tasks write one value each to one partition."""

    def __init__(self, cluster: ClusterClient, topic: str, query: str, *, bumps: bool) -> None:
        self.cluster, self.topic, self.query, self.bumps = cluster, topic, query, bumps
        self.transactions = Transactions(cluster, BACKOFF, 30_000)

    def ledger(self) -> QueryLedger:
        return QueryLedger(self.cluster, self.transactions, self.query, PREFIX, DECISIONS, TIMEOUT_MS, lambda: NOW_MS)

    async def attempt(self, batch: int, task: int, value: bytes) -> OpenTransaction | None:
        name, slot = BatchName(self.query, batch), Slot(task, 0)
        ledger = self.ledger()
        await ledger.ensure()
        mine = await open_attempt(ledger, PREFIX, name, slot, uuid4().hex[:8])
        if mine is None:
            return None
        if not self.bumps:
            await self.transactions.add_partitions(mine, {self.topic: [0]})
        producer = BatchProducer(
            self.cluster, BACKOFF, DeliveryLimits(), mine.transactional_id, joins_by_produce=self.bumps
        )
        await producer.send(batches(self.topic, [value], mine.producer))
        await producer.flush()
        return mine

    async def write(self, batch: int, tasks: int = 2) -> list[OpenTransaction]:
        written = [await self.attempt(batch, task, b"%d.%d" % (batch, task)) for task in range(tasks)]
        return [one for one in written if one is not None]

    async def commit(self, batch: int, written: list[OpenTransaction]) -> None:
        await commit_batch(self.ledger(), BatchName(self.query, batch), written, bumps=self.bumps)


def values(batches_written: int) -> list[bytes]:
    return [b"%d.%d" % (batch, task) for batch in range(batches_written) for task in range(2)]


@BUMPS
def test_batches_are_seen_when_they_are_committed_and_take_few_ids(
    broker: BrokerProcess, topic: str, bumps: bool
) -> None:
    async def scenario(cluster: ClusterClient) -> None:
        await create(cluster, topic)
        query = Query(cluster, topic, f"q-{topic}", bumps=bumps)
        for batch in range(5):
            written = await query.write(batch)
            assert sorted(await seen(cluster, topic)) == values(batch)
            await query.commit(batch, written)
            await until_seen(cluster, topic, values(batch + 1))
        found = await query.ledger().read()
        assert found is not None
        assert found.batch == 4
        assert len(found.pool) == 2
        assert not await query.ledger().open_transactions()

    run(broker.address, scenario)


@BUMPS
def test_a_run_that_died_leaves_nothing_and_a_decided_batch_is_not_written_again(
    broker: BrokerProcess, topic: str, bumps: bool
) -> None:
    async def scenario(cluster: ClusterClient) -> None:
        await create(cluster, topic)
        first = Query(cluster, topic, f"q-{topic}", bumps=bumps)
        await first.commit(0, await first.write(0))
        await first.write(1)
        second = Query(cluster, topic, f"q-{topic}", bumps=bumps)
        assert await second.write(0) == []
        await second.commit(1, await second.write(1))
        await until_seen(cluster, topic, values(2))
        assert len(await seen(cluster, topic, READ_UNCOMMITTED)) == 6
        third = Query(cluster, topic, f"q-{topic}", bumps=bumps)
        assert await third.write(1) == []
        await third.commit(1, [])
        assert sorted(await seen(cluster, topic)) == values(2)

    run(broker.address, scenario)


class Died(Exception):
    """The driver."""


def dying(ledger: QueryLedger, step: str, number: int, *, is_done: bool) -> QueryLedger:
    """Its driver dies at a step when it takes it for the `number`-th time: before it, or when it is done."""
    taken = 0
    take = getattr(ledger, step)

    async def take_or_die(*arguments: Any, **named: Any) -> Any:
        nonlocal taken
        taken += 1
        if taken > number or (taken == number and not is_done):
            raise Died
        result = await take(*arguments, **named)
        if taken >= number:
            raise Died
        return result

    setattr(ledger, step, take_or_die)
    return ledger


DEATHS = {
    "before the decision": (("write", 1, False), [True, False]),
    "after the decision": (("write", 1, True), [True, False]),
    "one transaction ended": (("end", 1, True), [True, False]),
    "both transactions ended": (("end", 2, True), [True, False]),
    "the loser aborted by its end": (("end", 3, True), [True]),
    "the loser aborted by a new epoch": (("renew", 1, True), [False]),
    "before the end is written": (("write", 2, False), [True, False]),
    "after the end is written": (("write", 2, True), [True, False]),
    "before the new epochs are written": (("write", 3, False), [False]),
}


@pytest.mark.parametrize(
    ("death", "bumps"),
    [
        pytest.param(death, bumps, id=f"{name}, {'bumping' if bumps else 'classic'}")
        for name, (death, levels) in DEATHS.items()
        for bumps in levels
    ],
)
def test_a_driver_that_dies_at_a_step_leaves_what_the_next_run_finishes(
    broker: BrokerProcess, topic: str, death: tuple[str, int, bool], bumps: bool
) -> None:
    async def scenario(cluster: ClusterClient) -> None:
        await create(cluster, topic)
        first = Query(cluster, topic, f"q-{topic}", bumps=bumps)
        await first.commit(0, await first.write(0))
        await first.attempt(1, 2, b"lost")
        written = await first.write(1)
        step, number, is_done = death
        ledger = dying(first.ledger(), step, number, is_done=is_done)
        with pytest.raises(Died):
            await commit_batch(ledger, BatchName(first.query, 1), written, bumps=bumps)
        second = Query(cluster, topic, f"q-{topic}", bumps=bumps)
        for batch in (1, 2):
            await second.commit(batch, await second.write(batch))
        await until_seen(cluster, topic, values(3))
        assert not await second.ledger().open_transactions()

    run(broker.address, scenario)


@BUMPS
def test_an_end_may_be_repeated(broker: BrokerProcess, topic: str, bumps: bool) -> None:
    async def scenario(cluster: ClusterClient) -> None:
        await create(cluster, topic)
        query = Query(cluster, topic, f"q-{topic}", bumps=bumps)
        (written,) = await query.write(0, tasks=1)
        for _ in range(3):
            await query.transactions.end(written, is_commit=True, bumps=bumps)
        await until_seen(cluster, topic, [b"0.0"])

    run(broker.address, scenario)


def test_attempts_that_are_aborted_are_not_seen(broker: BrokerProcess, topic: str) -> None:
    async def scenario(cluster: ClusterClient) -> None:
        await create(cluster, topic)
        query = Query(cluster, topic, f"q-{topic}", bumps=True)
        written = await query.write(0)
        assert not await seen(cluster, topic)
        await abort_batch(query.ledger(), BatchName(query.query, 0), written, bumps=True)
        assert not await seen(cluster, topic)
        assert not await query.ledger().open_transactions()

    run(broker.address, scenario)


@BUMPS
@pytest.mark.parametrize("is_aborted", [False, True], ids=["committed", "aborted"])
def test_a_loser_that_sends_late_is_refused_also_where_leaders_do_not_ask_for_its_transaction(
    own_broker: Callable[..., BrokerProcess], bumps: bool, is_aborted: bool
) -> None:
    async def scenario(cluster: ClusterClient) -> None:
        await create(cluster, "t")
        query = Query(cluster, "t", "q", bumps=bumps)
        loser = await query.attempt(0, 0, b"lost")
        assert loser is not None
        if is_aborted:
            await abort_batch(query.ledger(), BatchName("q", 0), [], bumps=bumps)
        else:
            await query.commit(0, await query.write(0))
        late = BatchProducer(cluster, BACKOFF, DeliveryLimits(), loser.transactional_id, joins_by_produce=bumps)
        await late.send(batches("t", [b"late"], loser.producer, sequence=1))
        with pytest.raises(DeliveryFailed, match="INVALID_PRODUCER_EPOCH"):
            await late.flush()
        for batch in range(1 - is_aborted, 3):
            await query.commit(batch, await query.write(batch))
        await until_seen(cluster, "t", values(3))

    run(own_broker("--set", "transaction.partition.verification.enable=false").address, scenario)


def test_a_transaction_that_another_ended_leaves_its_batch_undecided(broker: BrokerProcess, topic: str) -> None:
    async def scenario(cluster: ClusterClient) -> None:
        await create(cluster, topic)
        query = Query(cluster, topic, f"q-{topic}", bumps=True)
        written = await query.write(0)
        await query.transactions.end(written[1], is_commit=False, bumps=True)
        with pytest.raises(WriteError, match="ended before all tasks were done"):
            await query.commit(0, written)
        again = Query(cluster, topic, f"q-{topic}", bumps=True)
        await again.commit(0, await again.write(0))
        await until_seen(cluster, topic, values(1))

    run(broker.address, scenario)


@BUMPS
def test_an_id_is_given_to_the_first_attempt_that_claims_it(broker: BrokerProcess, topic: str, bumps: bool) -> None:
    async def scenario(cluster: ClusterClient) -> None:
        await create(cluster, topic)
        query = Query(cluster, topic, f"q-{topic}", bumps=bumps)
        await query.commit(0, await query.write(0))
        state = await query.ledger().read()
        assert state is not None
        pooled = state.pool["0.0"]
        assert await query.ledger().claim(pooled, "first")
        assert not await query.ledger().claim(pooled, "second")
        assert await query.ledger().claim(pooled, "first")
        await query.commit(1, await query.write(1))
        state = await query.ledger().read()
        assert state is not None
        later = state.pool["1.0"]
        assert await query.ledger().claim(later, "third")
        stale = later._replace(producer=Producer(later.producer.id, later.producer.epoch - 1))
        assert not await query.ledger().claim(stale, "fourth")
        await until_seen(cluster, topic, values(2))

    run(broker.address, scenario)


def test_a_driver_that_was_fenced_is_told_so(broker: BrokerProcess, topic: str) -> None:
    async def scenario(cluster: ClusterClient) -> None:
        await create(cluster, topic)
        query = Query(cluster, topic, f"q-{topic}", bumps=True)
        await query.commit(0, await query.write(0))
        old, new = query.ledger(), query.ledger()
        await old.fence()
        await new.fence()
        state = await new.read()
        assert state is not None
        with pytest.raises(WriteError, match="another driver has taken over"):
            await old.write(state)
        await new.write(state)

    run(broker.address, scenario)


def test_a_driver_is_fenced_also_by_one_whose_producer_id_is_another(broker: BrokerProcess, topic: str) -> None:
    """As after 32,766 batches, when a coordinator gives a new id: the log knows epochs of one id alone."""

    async def scenario(cluster: ClusterClient) -> None:
        await create(cluster, topic)
        query = Query(cluster, topic, f"q-{topic}", bumps=True)
        await query.commit(0, await query.write(0))
        state = await query.ledger().read()
        assert state is not None
        old = query.ledger()
        await old.fence()
        for prefix in ("another", "another", "yet-another"):
            new = QueryLedger(cluster, query.transactions, query.query, prefix, DECISIONS, TIMEOUT_MS, lambda: NOW_MS)
            await new.fence()
            newest = replace(state, batch=state.batch + 1)
            await new.write(newest)
            with pytest.raises(WriteError, match="another driver has taken over"):
                await old.write(state)
            assert await new.read() == newest
            old = new

    run(broker.address, scenario)


def test_a_decision_that_does_not_fit_is_refused_and_the_ids_for_the_next_batch_go_first(
    broker: BrokerProcess, topic: str
) -> None:
    decisions = f"decisions-{topic}"
    create_with_configs(broker.address, decisions, config={"cleanup.policy": "compact", "max.message.bytes": "3000"})

    def state(tasks: int, pooled: int) -> QueryState:
        drawn = [
            OpenTransaction(f"sink-q-task-{task}.0-{uuid4().hex[:12]}", Producer(task, 0)) for task in range(tasks)
        ]
        pool = {
            f"{task}.0": OpenTransaction(f"sink-q-task-{task}.0-{uuid4().hex[:12]}", Producer(task, 0))
            for task in range(pooled)
        }
        return QueryState(7, Status.DECIDED, tuple(drawn), True, TIMEOUT_MS, pool)

    async def scenario(cluster: ClusterClient) -> None:
        transactions = Transactions(cluster, BACKOFF, 30_000)
        query = f"q-{topic}"
        ledger = QueryLedger(cluster, transactions, query, PREFIX, decisions, TIMEOUT_MS, lambda: NOW_MS)
        await ledger.fence()
        large = state(50, 200)
        await ledger.write(large)
        assert await ledger.read() == without_pool(large)
        small = state(50, 10)
        await ledger.write(small)
        assert await ledger.read() == small
        sentence = f"batch 7 of query {query} is not visible: the decision on its 300 tasks is larger than "
        with pytest.raises(WriteError, match=sentence):
            await ledger.write(state(300, 200))
        assert await ledger.read() == small
        # A task that is the last of so many tells before it writes.
        await ledger.refuse_too_many(10_000)
        with pytest.raises(WriteError, match=f"topic {decisions} may not hold a decision on 11000 tasks, because"):
            await ledger.refuse_too_many(11_000)

    run(broker.address, scenario)


def test_a_state_is_found_behind_those_of_other_queries(broker: BrokerProcess, topic: str) -> None:
    async def scenario(cluster: ClusterClient) -> None:
        await create(cluster, topic)
        mine = Query(cluster, topic, f"mine-{topic}", bumps=True)
        await mine.commit(0, await mine.write(0))
        other = Query(cluster, topic, f"other-{topic}", bumps=True).ledger()
        await other.fence()
        state = await mine.ledger().read()
        assert state is not None
        for _ in range(100):
            await other.write(state)
        assert await mine.ledger().read() == state

    run(broker.address, scenario)


def test_many_batches_of_many_partitions_without_a_transaction(broker: BrokerProcess, topic: str) -> None:
    async def scenario(cluster: ClusterClient) -> None:
        await create(cluster, topic)
        producer_id = await Transactions(cluster, BACKOFF, 30_000).begin(None, TIMEOUT_MS)
        assert producer_id.epoch == 0
        producer = BatchProducer(cluster, BACKOFF, DeliveryLimits(buffer_bytes=1_000, max_request_bytes=300))
        wanted = [b"%d" % number for number in range(300)]
        await producer.send(batches(topic, wanted))
        await producer.flush()
        assert await seen(cluster, topic) == wanted

    run(broker.address, scenario)


def test_a_topic_or_partition_that_does_not_exist_is_one_sentence(broker: BrokerProcess, topic: str) -> None:
    async def scenario(cluster: ClusterClient) -> None:
        await create(cluster, topic)
        producer = BatchProducer(cluster, BACKOFF, DeliveryLimits())
        (batch,) = batches(topic, [b"x"])
        await producer.send([batch._replace(partition=7)])
        with pytest.raises(
            DeliveryFailed, match=f"{topic}-7: 1 record could not be written: there is no such partition"
        ):
            await producer.flush()

    run(broker.address, scenario)


def test_a_timeout_that_brokers_do_not_allow_is_refused_before_anything_is_written(broker: BrokerProcess) -> None:
    async def scenario(cluster: ClusterClient) -> None:
        with pytest.raises(InvalidTransactionTimeout):
            await Transactions(cluster, BACKOFF, 30_000).begin("too-long", 2**31 - 1)

    run(broker.address, scenario)
