"""Transactions over real logs, through power cuts: readers of committed records see what was committed, once, in order.

Two producers share a transactional id. Requests and answers are lost, delivered twice, retried or, in version 2, very
late; the power is cut after any operation on the disk; time runs out; a topic goes and comes again.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from lamina.coordinators.transactions import ABORT_TIMED_OUT
from lamina.errors import ErrorCode
from tests.broker.power_cuts import PowerCutBroker
from tests.broker.transacting import (
    BUMPING,
    CLASSIC,
    TIMEOUT_MS,
    Answer,
    Me,
    Transacting,
    Versions,
    committed,
    fetched_offset,
)

pytestmark = pytest.mark.random

EXAMPLES = max(int(os.environ.get("LAMINA_STORIES", "6")) // 6, 3)
"""Lives of two producers, for each kind of them; `make faults` tells many more."""
ONE_OF_EACH = {
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "add.partitions.to.txn.retry.backoff.max.ms": "0",
}
PARTITIONS = [("t", 0), ("t", 1), ("u", 0)]
FAULTS = st.sampled_from((*[""] * 8, "request lost", "answer lost", "twice", "cut", "cut"))
AGAIN = (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


@dataclass
class Transaction:
    writes: list[tuple[tuple[str, int], int]] = field(default_factory=list)
    offset: int | None = None
    wish: bool | None = None
    """To commit or to abort, once that was asked for."""
    outcome: bool | None = False
    """Whether it was committed; ``None`` if nobody was told."""
    must_abort: bool = False


@dataclass
class Client:
    versions: Versions
    me: Me | None = None
    transaction: Transaction = field(default_factory=Transaction)
    added: set[tuple[str, int]] = field(default_factory=set)
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)


class Transactions(RuleBasedStateMachine):
    versions = (BUMPING, BUMPING)

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="transactions-"))
        self.broker = PowerCutBroker(self.root, ONE_OF_EACH)
        self.broker.create("t", partitions=2)
        self.broker.create("u")
        self.orders = Transacting(self.broker)
        self.orders.find()
        self.clients = [Client(versions) for versions in self.versions]
        self.all: list[Transaction] = []
        self.number = 0
        self.late: list[Callable[[], object]] = []
        """Requests of version 2 that are still under way."""

    # Producers

    @rule(which=st.integers(0, 1), goes_on=st.booleans(), fault=FAULTS, seed=st.integers(0, 2**32))
    def init(self, which: int, goes_on: bool, fault: str, seed: int) -> None:
        client = self.clients[which]
        expected = client.me if goes_on and client.me is not None else Me(-1, -1)
        response = self._try(lambda: self.orders.init(client.versions.init, expected), fault, seed)
        if response is None or response.code in AGAIN:
            return
        self._start_anew(client, response.me if response.code == 0 else None)

    def _start_anew(self, client: Client, me: Me | None) -> None:
        if client.me is None or me is None or me != client.me:
            client.sequences = {}
        client.me, client.transaction, client.added = me, Transaction(), set()

    @precondition(lambda self: any(client.me for client in self.clients))
    @rule(
        which=st.integers(0, 1),
        partition=st.sampled_from(PARTITIONS),
        fault=FAULTS,
        retries=st.booleans(),
        is_late=st.sampled_from((False, False, False, True)),
        seed=st.integers(0, 2**32),
    )
    def produce(
        self, which: int, partition: tuple[str, int], fault: str, retries: bool, is_late: bool, seed: int
    ) -> None:
        client, transaction = self.clients[which], self.clients[which].transaction
        if client.me is None or transaction.wish is not None or not self._is_there(partition):
            return
        if client.versions.adds_itself and partition not in client.added:
            me = client.me
            codes = self._try(lambda: self.orders.add(me, partition), "", seed)
            assert codes is not None
            if codes[0] in AGAIN:
                return
            if codes != [0]:
                self._start_anew(client, None)
                return
            client.added.add(partition)
        self._remember(transaction)
        self.number += 1
        number, me, sequence = self.number, client.me, client.sequences.get(partition, 0)
        topic, index = partition

        def write() -> int:
            return self.orders.produce(me, [b"%d" % number], sequence, client.versions.produce, index, topic)

        transaction.writes.append((partition, number))
        client.sequences[partition] = sequence + 1
        if is_late and not client.versions.adds_itself:
            transaction.must_abort = True
            self.late.append(write)
            return
        code = self._try(write, fault, seed)
        for _ in range(3):
            if (code is not None and code not in AGAIN) or not retries:
                break
            code = self._try(write, "", seed)
        if code == ErrorCode.INVALID_PRODUCER_EPOCH:
            self._start_anew(client, None)
        elif code != 0:
            transaction.must_abort = True

    @precondition(lambda self: any(client.me for client in self.clients))
    @rule(which=st.integers(0, 1), fault=FAULTS, seed=st.integers(0, 2**32))
    def commit_offset(self, which: int, fault: str, seed: int) -> None:
        client, transaction = self.clients[which], self.clients[which].transaction
        if client.me is None or transaction.wish is not None:
            return
        me = client.me
        if client.versions.adds_itself:
            code = self._try(lambda: self.orders.add_offsets(me), "", seed)
            if code != 0:
                if code not in AGAIN:
                    self._start_anew(client, None)
                return
            client.added.add(("offsets", 0))
        self._remember(transaction)
        self.number += 1
        transaction.offset = number = self.number
        code = self._try(lambda: self.orders.commit_offset(me, number, version=client.versions.commit), fault, seed)
        if code != 0:
            transaction.must_abort = True

    @precondition(lambda self: any(client.me for client in self.clients))
    @rule(
        which=st.integers(0, 1),
        is_commit=st.sampled_from((True, True, False)),
        fault=FAULTS,
        is_late=st.booleans(),
        seed=st.integers(0, 2**32),
    )
    def end(self, which: int, is_commit: bool, fault: str, is_late: bool, seed: int) -> None:
        client, transaction = self.clients[which], self.clients[which].transaction
        if client.me is None:
            return
        if transaction.wish is None:
            if client.versions.adds_itself and not client.added:
                return
            has_written = bool(transaction.writes) or transaction.offset is not None
            transaction.wish = is_commit and not transaction.must_abort and has_written
            if transaction.wish:
                transaction.outcome = None
        me, wish = client.me, transaction.wish

        def ask() -> Answer:
            return self.orders.end(me, commit=wish, version=client.versions.end, settled=False)

        if is_late and not client.versions.adds_itself:
            self.late.append(ask)
        response = self._try(ask, fault, seed)
        if response is None or response.code in AGAIN:
            return
        if response.code != 0:
            # Somebody else has the id now, or the transaction ran out of time: the coordinator knows, we do not.
            self._start_anew(client, None)
            return
        transaction.outcome = wish
        # After a batch of which nobody knows a client takes a new epoch, in which sequences begin anew.
        is_lost = transaction.must_abort and client.versions.adds_itself
        self._start_anew(client, None if is_lost else response.me)

    @rule(
        which=st.integers(0, 1),
        is_commit=st.sampled_from((True, True, False)),
        fault=st.sampled_from(("", "answer lost", "cut", "cut", "cut")),
        is_late=st.booleans(),
        seed=st.integers(0, 2**32),
    )
    def transact(self, which: int, is_commit: bool, fault: str, is_late: bool, seed: int) -> None:
        """A whole transaction over two partitions to which nothing happens before its end."""
        self.init(which, False, "", seed)
        self.broker.settle()
        self.init(which, False, "", seed)
        for partition in PARTITIONS[:2]:
            self.produce(which, partition, "", True, False, seed)
        self.commit_offset(which, "", seed)
        self.end(which, is_commit, fault, is_late, seed)

    @precondition(lambda self: self.late)
    @rule(data=st.data())
    def deliver_late(self, data: st.DataObject) -> None:
        """The client has given up on it; the answer is for nobody."""
        self.late.pop(data.draw(st.integers(0, len(self.late) - 1)))()

    def _remember(self, transaction: Transaction) -> None:
        if not any(one is transaction for one in self.all):
            self.all.append(transaction)

    def _try(self, ask: Callable[[], Any], fault: str, seed: int) -> Any:
        """``None`` when the client gets no answer."""
        if fault == "request lost":
            return None
        before = len(self.broker.disk.ops)
        response = ask()
        if fault == "twice":
            ask()
        if fault == "cut":
            rng = Random(seed)
            self.broker.cut_power(rng.randint(before, len(self.broker.disk.ops)), rng)
        return None if fault in ("answer lost", "cut") else response

    # The broker

    @rule(seed=st.integers(0, 2**32))
    def cut_power(self, seed: int) -> None:
        self.broker.cut_power(len(self.broker.disk.ops), Random(seed))

    @rule()
    def settle(self) -> None:
        self.broker.settle()

    @rule(ms=st.sampled_from((1_000, TIMEOUT_MS + 1)))
    def pass_time(self, ms: int) -> None:
        self.broker.passed_ms += ms
        for shard in self.broker.parts.transactions.runtime:
            machine = shard.machine
            assert machine is not None
            shard.run(lambda now, m=machine: m.on_timer(ABORT_TIMED_OUT, now))  # type: ignore[misc]

    @precondition(lambda self: self._is_there(("u", 0)))
    @rule()
    def delete_topic(self) -> None:
        self.broker.delete("u")
        for transaction in self.all:
            transaction.writes = [
                (partition, number) for partition, number in transaction.writes if partition[0] != "u"
            ]
        for client in self.clients:
            client.sequences.pop(("u", 0), None)
            client.transaction.must_abort = client.transaction.must_abort or ("u", 0) in client.added
        self.late.clear()

    @precondition(lambda self: not self._is_there(("u", 0)))
    @rule()
    def create_topic(self) -> None:
        self.broker.create("u")

    def _is_there(self, partition: tuple[str, int]) -> bool:
        return self.broker.parts.partitions.is_known(*partition)

    def teardown(self) -> None:
        """Nobody writes any more: in the end all transactions have ended, and readers see what was committed."""
        try:
            self.broker.settle()
            self.pass_time(TIMEOUT_MS + 1)
            self.broker.settle()
            self._check()
            self.broker.cut_power(len(self.broker.disk.ops), Random(0))
            self.broker.settle()
            self._check()
        finally:
            self.broker.close()
            shutil.rmtree(self.root)

    def _check(self) -> None:
        seen = {partition: self._read(partition) for partition in PARTITIONS if self._is_there(partition)}
        for transaction in self.all:
            there = {number in seen[partition] for partition, number in transaction.writes if partition in seen}
            told = {transaction.outcome} if transaction.outcome is not None else {True, False}
            assert len(there) <= 1, f"torn apart: {transaction}"
            assert there <= told, transaction
        assert fetched_offset(self.broker, stable=True)[0] in self._possible_offsets()

    def _read(self, partition: tuple[str, int]) -> list[int]:
        of = self.broker.parts.partitions.get(*partition)
        assert of.last_stable_offset == of.log.log_end_offset, "a transaction hangs"
        numbers = [int(value) for value in committed(self.broker, *partition)]
        assert numbers == sorted(set(numbers)), "not in order, or not once"
        return numbers

    def _possible_offsets(self) -> set[int]:
        """That of the last transaction of which it is known that it was committed, or of any after it of which it is
        not known."""
        possible = {-1}
        for transaction in self.all:
            if transaction.offset is not None and transaction.outcome is not False:
                possible = {transaction.offset} if transaction.outcome else possible | {transaction.offset}
        return possible


class ClassicTransactions(Transactions):
    versions = (CLASSIC, CLASSIC)


class MixedTransactions(Transactions):
    versions = (BUMPING, CLASSIC)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("machine", [Transactions, ClassicTransactions, MixedTransactions])
def test_readers_see_what_was_committed_through_power_cuts(machine: type[Transactions]) -> None:
    run_state_machine_as_test(
        machine,
        # A failure is told as it was found: making it smaller would take many minutes.
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=15,
            deadline=None,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=list(HealthCheck),
        ),
    )
