"""Transactions under every order of faults: readers of committed records see what was committed, once, in order.

Two producers share a transactional id. Requests and answers are lost, delivered twice or, in version 2, very late;
the broker crashes before and after each append and between any two markers; time runs out; partitions go.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from lamina.coordinators.decision import Producer, SendMarkers
from lamina.coordinators.records.transaction_records import Status
from lamina.coordinators.transaction_requests import BUMPING, CLASSIC, TransactionSettings
from lamina.coordinators.transaction_transitions import ENDING, LAST_CLIENT_EPOCH
from lamina.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTransactionState,
    KafkaError,
    ProducerFenced,
)
from tests.coordinators.transaction_world import TIMEOUT_MS, Crash, World
from tests.examples import examples

pytestmark = pytest.mark.random

T = TypeVar("T")

PARTITIONS = [("t", 0), ("t", 1), ("u", 0)]
DAY_MS = 24 * 60 * 60 * 1000
FENCED = (ProducerFenced, InvalidProducerIdMapping)
FAULTS = st.sampled_from((*[""] * 6, "request lost", "answer lost", "twice", "crash before", "crash after"))


@dataclass
class ToyLog:
    """A partition: data and markers, in order."""

    entries: list[tuple[Producer, int | bool]] = field(default_factory=list)
    """Numbers are records, truths are markers: was it a commit?"""
    epochs: dict[int, int] = field(default_factory=dict)
    coordinator_epoch: int = -1

    def _fence(self, producer: Producer) -> None:
        if producer.epoch < self.epochs.get(producer.id, -1):
            raise ProducerFenced
        self.epochs[producer.id] = producer.epoch

    def append(self, producer: Producer, number: int) -> None:
        self._fence(producer)
        self.entries.append((producer, number))

    def end(self, sent: SendMarkers) -> None:
        assert sent.coordinator_epoch >= self.coordinator_epoch
        self.coordinator_epoch = sent.coordinator_epoch
        self._fence(sent.producer)
        self.entries.append((sent.producer, sent.is_commit))

    def committed(self) -> list[int]:
        """What a reader sees up to the last stable offset, and nothing may be beyond it."""
        seen = []
        for at, (producer, number) in enumerate(self.entries):
            if isinstance(number, bool):
                continue
            markers = (n for p, n in self.entries[at:] if isinstance(n, bool) and p.id == producer.id)
            is_commit = next(markers, None)
            assert is_commit is not None, "a transaction hangs"
            if is_commit:
                seen.append(number)
        return seen


@dataclass
class Transaction:
    writes: list[int] = field(default_factory=list)
    is_committed: bool = False
    wish: bool | None = None
    """To commit or to abort, once that was asked for."""
    must_abort: bool = False


@dataclass
class Client:
    version: int
    who: Producer | None = None
    transaction: Transaction = field(default_factory=Transaction)
    added: set[tuple[str, int]] = field(default_factory=set)
    before: list[Transaction] = field(default_factory=list)

    def start_anew(self, who: Producer | None) -> None:
        self.before.append(self.transaction)
        self.who, self.transaction, self.added = who, Transaction(), set()


class Transactions(RuleBasedStateMachine):
    versions = (BUMPING, BUMPING)
    level = BUMPING
    first_epoch = 0

    def __init__(self) -> None:
        super().__init__()
        self.world = World(TransactionSettings(transaction_version=self.level))
        if self.first_epoch:
            self.world.init()
            value = self.world.value()
            assert value is not None
            record = self.world.log[0]
            self.world.log = [record._replace(value=value._replace(producer_epoch=self.first_epoch))]
            self.world.start()
        self.clients = [Client(version) for version in self.versions]
        self.owner: Client | None = None
        """Who took the transactional id over last."""
        self.logs = {partition: ToyLog() for partition in PARTITIONS}
        self.gone: set[tuple[str, int]] = set()
        self.number = 0
        self.late: list[tuple[Client, Producer, Transaction, tuple[str, int] | bool]] = []
        """Requests of version 2 that are still under way: a write to a partition, or an end."""

    # Producers

    @precondition(lambda self: not all(client.who for client in self.clients))
    @rule(which=st.integers(0, 1), fault=FAULTS)
    def begin(self, which: int, fault: str) -> None:
        if self.clients[which].who is None:
            self.init(which, False, fault)

    @rule(which=st.integers(0, 1), goes_on=st.booleans(), fault=FAULTS)
    def init(self, which: int, goes_on: bool, fault: str) -> None:
        client = self.clients[which]
        expected = client.who if goes_on else None
        asked_in = len(self.world.log)

        def ask() -> Producer:
            try:
                return self.world.init(expected)
            finally:
                if any(r.value is not None and r.value.status is Status.EMPTY for r in self.world.log[asked_in:]):
                    self.owner = client

        try:
            response = self._try(ask, fault)
        except ConcurrentTransactions:
            return
        except FENCED:
            client.start_anew(None)
            return
        if response is not None:
            client.start_anew(response)

    @precondition(lambda self: any(client.who for client in self.clients))
    @rule(which=st.integers(0, 1), partition=st.sampled_from(PARTITIONS), fault=FAULTS, is_late=st.booleans())
    def produce(self, which: int, partition: tuple[str, int], fault: str, is_late: bool) -> None:
        client = self.clients[which]
        transaction = client.transaction
        if client.who is None or transaction.wish is not None or partition in self.gone:
            return
        if is_late and client.version == BUMPING:
            transaction.must_abort = True
            self.late.append((client, client.who, transaction, partition))
            return
        try:
            done = self._try(lambda: self._write(client, client.who, transaction, partition), fault)
        except ConcurrentTransactions:
            return
        except FENCED:
            client.start_anew(None)
            return
        if done is None:
            transaction.must_abort = True

    def _write(
        self, client: Client, who: Producer | None, transaction: Transaction, partition: tuple[str, int]
    ) -> bool:
        assert who is not None
        if client.version == BUMPING or partition not in client.added:
            self.world.add(who, partition, version=client.version)
            assert client is self.owner
            client.added.add(partition)
        if client.version == CLASSIC:
            error = self.world.verify(who, partition)[partition]
            if error is not None:
                raise ProducerFenced
        assert client is self.owner
        self.number += 1
        self.logs[partition].append(who, self.number)
        transaction.writes.append(self.number)
        return True

    @precondition(lambda self: any(client.who for client in self.clients))
    @rule(which=st.integers(0, 1), is_commit=st.booleans(), fault=FAULTS, is_late=st.booleans())
    def end(self, which: int, is_commit: bool, fault: str, is_late: bool) -> None:
        client = self.clients[which]
        transaction = client.transaction
        if client.who is None:
            return
        if transaction.wish is None:
            transaction.wish = is_commit and not transaction.must_abort and bool(transaction.writes)
            if client.version == CLASSIC and not client.added:
                transaction.wish = None
                return
        if is_late and client.version == BUMPING:
            self.late.append((client, client.who, transaction, transaction.wish))
        try:
            response = self._try(lambda: self._end(client, client.who, transaction), fault)
        except ConcurrentTransactions:
            return
        except (*FENCED, InvalidTransactionState):
            client.start_anew(None)
            return
        if response is not None:
            client.start_anew(response if client.version == BUMPING else client.who)

    def _end(self, client: Client, who: Producer | None, transaction: Transaction) -> Producer:
        assert who is not None
        assert transaction.wish is not None
        try:
            response = self.world.end(who, is_commit=transaction.wish, version=client.version)
        except Crash:
            value = self.world.value()
            assert value is not None
            if value.status in ENDING:
                transaction.is_committed = transaction.wish
            raise
        assert client is self.owner
        assert response.epoch <= LAST_CLIENT_EPOCH
        transaction.is_committed = transaction.wish
        return response

    @precondition(lambda self: self.owner is not None and self.owner.who is not None)
    @rule(partition=st.sampled_from(PARTITIONS), is_commit=st.booleans(), is_late=st.booleans())
    def transact(self, partition: tuple[str, int], is_commit: bool, is_late: bool) -> None:
        """A whole transaction to which nothing happens, but that its end may come once more later."""
        assert self.owner is not None
        which = self.clients.index(self.owner)
        self._settle()
        self.produce(which, partition, "", False)
        self.end(which, is_commit, "", is_late)
        self._settle()

    @precondition(lambda self: self.late)
    @rule(data=st.data())
    def deliver_late(self, data: st.DataObject) -> None:
        """The client has given up on it; the answer is for nobody."""
        client, who, transaction, what = self.late.pop(data.draw(st.integers(0, len(self.late) - 1)))
        with contextlib.suppress(KafkaError):
            if isinstance(what, bool):
                self._end(client, who, transaction)
            elif what not in self.gone:
                self._write(client, who, transaction, what)

    def _try(self, ask: Callable[[], T], fault: str) -> T | None:
        """``None`` when the client gets no answer."""
        if fault == "request lost":
            return None
        self.world.crash_at = fault.removeprefix("crash ") if fault.startswith("crash") else ""
        try:
            response = ask()
        except Crash:
            return None
        finally:
            self.world.crash_at = ""
        if fault == "twice":
            with contextlib.suppress(KafkaError):
                ask()
        return None if fault == "answer lost" else response

    # The broker

    @precondition(lambda self: self.world.to_send)
    @rule(count=st.integers(0, 3), fault=st.sampled_from(("", "", "crash", "crash before", "crash after", "twice")))
    def write_markers(self, count: int, fault: str) -> None:
        sent = self.world.to_send[0]
        for partition in sorted(sent.partitions)[:count]:
            self._mark(partition, sent)
        if count < len(sent.partitions) or fault == "crash":
            if fault.startswith("crash"):
                self.world.start()
            return
        self.world.to_send.pop(0)
        self._try(lambda: self.world.markers_written(sent), fault)

    def _mark(self, partition: tuple[str, int], sent: SendMarkers) -> None:
        if partition not in self.gone:
            self.logs[partition].end(sent)

    @rule()
    def crash(self) -> None:
        self.world.start()

    @rule(ms=st.sampled_from((1_000, 1_000, TIMEOUT_MS + 10_001, 8 * DAY_MS)))
    def pass_time(self, ms: int) -> None:
        self.world.pass_time(ms)

    @precondition(lambda self: not self.gone)
    @rule(partition=st.sampled_from(PARTITIONS))
    def delete_partition(self, partition: tuple[str, int]) -> None:
        self.gone.add(partition)

    def teardown(self) -> None:
        """Nobody writes any more: in the end all transactions have ended, and readers see what was committed."""
        transactions = [one for client in self.clients for one in (*client.before, client.transaction)]
        self._settle()
        self.world.pass_time(TIMEOUT_MS + 10_001)
        self._settle()
        committed = {number for one in transactions for number in one.writes if one.is_committed}
        for partition, log in self.logs.items():
            if partition not in self.gone:
                seen = log.committed()
                there = [number for _, number in log.entries if not isinstance(number, bool)]
                assert seen == [number for number in there if number in committed]
        for record in self.world.log:
            value = self.world.value(record.key.transactional_id)
            assert value is None or value.status not in ENDING | {Status.ONGOING}

    def _settle(self) -> None:
        while self.world.to_send:
            sent = self.world.to_send.pop(0)
            for partition in sent.partitions:
                self._mark(partition, sent)
            self.world.markers_written(sent)


class ClassicTransactions(Transactions):
    versions = (CLASSIC, CLASSIC)
    level = 1


class ClassicTransactionsAtLevel2(Transactions):
    versions = (CLASSIC, CLASSIC)


class MixedTransactions(Transactions):
    versions = (BUMPING, CLASSIC)


class LastEpochs(Transactions):
    first_epoch = LAST_CLIENT_EPOCH - 4


class LastClassicEpochs(ClassicTransactions):
    first_epoch = LAST_CLIENT_EPOCH - 4


@pytest.mark.parametrize(
    "machine",
    [
        Transactions,
        ClassicTransactions,
        ClassicTransactionsAtLevel2,
        MixedTransactions,
        LastEpochs,
        LastClassicEpochs,
    ],
)
def test_readers_of_committed_records_see_what_was_committed_once_and_in_order(machine: type[Transactions]) -> None:
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples(100), stateful_step_count=30, deadline=None)
    )
