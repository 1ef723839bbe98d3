"""Brokers of a model, with crashes: what they keep of a query's transactions and decisions, and which rows are seen."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lamina.errors import InvalidProducerEpoch
from lamina.peer.transacting import Producer
from lamina.producing.attempting import open_attempt
from lamina.producing.decisions import (
    BatchName,
    OpenTransaction,
    QueryState,
    Slot,
    attempts_prefix,
    decode_state,
    encode_state,
)
from lamina.producing.errors import TransactionLost

PREFIX, QUERY = "lamina", "query"
TIMEOUT_MS = 60_000
Row = tuple[int, int]
"""Batch and partition: each is to be seen once."""

T = TypeVar("T")


class Crash(Exception):
    """The driver is gone."""


@dataclass
class TransactionalId:
    producer: Producer
    rows: list[Row] | None = None
    """``None`` where nothing is open."""
    last_end: tuple[Producer, bool] | None = None


@dataclass
class Brokers:
    bumps: bool
    ids: dict[str, TransactionalId] = field(default_factory=dict)
    states: list[bytes] = field(default_factory=list)
    claims: dict[OpenTransaction, str] = field(default_factory=dict)
    driver_epoch: int = 0
    visible: list[Row] = field(default_factory=list)
    tokens: int = 0
    producers: int = 0
    now_ms: int = 0

    # What a task does

    def begin(self, transactional_id: str) -> Producer:
        known = self.ids.get(transactional_id)
        if known is None:
            self.producers += 1
            known = self.ids[transactional_id] = TransactionalId(Producer(self.producers, 0))
        else:
            known.producer = Producer(known.producer.id, known.producer.epoch + 1)
            known.rows = None
            known.last_end = None
        return known.producer

    def write(self, mine: OpenTransaction, row: Row) -> None:
        known = self.ids[mine.transactional_id]
        if known.producer != mine.producer:
            raise InvalidProducerEpoch(mine.transactional_id)
        assert known.rows is None, "two attempts share a transaction"
        known.rows = [row]

    def state(self) -> QueryState | None:
        return decode_state(self.states[-1]) if self.states else None

    def attempt(self, name: BatchName, partition: int, attempt: int = 0) -> "Attempt | None":
        """``None`` where the batch is decided."""
        self.tokens += 1
        opening = open_attempt(_Tasks(self), PREFIX, name, Slot(partition, attempt), str(self.tokens))
        transaction = _at_once(opening)
        return None if transaction is None else Attempt(self, name, partition, transaction)

    def claim(self, transaction: OpenTransaction, token: str) -> bool:
        """As a log does: an epoch that it has seen a later one of is refused, and the first batch of one is kept."""
        newer = any(
            one.transactional_id == transaction.transactional_id and one.producer.epoch > transaction.producer.epoch
            for one in self.claims
        )
        return not newer and self.claims.setdefault(transaction, token) == token

    # What the coordinator does

    def end(self, mine: OpenTransaction, *, is_commit: bool) -> Producer | None:
        known = self.ids[mine.transactional_id]
        if known.last_end == (mine.producer, is_commit) and known.rows is None:
            return known.producer if self.bumps else None
        if known.producer != mine.producer or known.rows is None:
            raise TransactionLost(mine.transactional_id)
        if is_commit:
            self.visible += known.rows
        known.rows, known.last_end = None, (mine.producer, is_commit)
        if not self.bumps:
            return None
        known.producer = Producer(mine.producer.id, mine.producer.epoch + 1)
        return known.producer

    def time_out(self, mine: OpenTransaction) -> None:
        self.begin(mine.transactional_id)


class _Tasks:
    """What brokers answer to tasks."""

    timeout_ms = TIMEOUT_MS

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self.now_ms = lambda: brokers.now_ms

    async def read(self) -> QueryState | None:
        return self._brokers.state()

    async def claim(self, transaction: OpenTransaction, token: str) -> bool:
        return self._brokers.claim(transaction, token)

    async def renew(self, transactional_id: str) -> Producer:
        return self._brokers.begin(transactional_id)


def _at_once(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine gives that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError("it waits for something")


@dataclass
class Attempt:
    brokers: Brokers
    name: BatchName
    partition: int
    transaction: OpenTransaction

    def write(self) -> OpenTransaction:
        self.brokers.write(self.transaction, (self.name.batch, self.partition))
        return self.transaction


class ModelLedger:
    """Counts its steps; crashes before or after one of them, or never."""

    timeout_ms = TIMEOUT_MS

    def __init__(self, brokers: Brokers, crash_at: int = -1, *, is_done: bool = False) -> None:
        self._brokers = brokers
        self.now_ms = lambda: brokers.now_ms
        self._crash_at = crash_at
        self._is_done = is_done
        self._epoch = -1
        self.steps = 0

    def _step(self, work: Callable[[], T]) -> T:
        self.steps += 1
        if self.steps == self._crash_at + 1 and not self._is_done:
            raise Crash
        if self.steps > self._crash_at + 1 > 0:
            raise Crash
        result = work()
        if self.steps == self._crash_at + 1:
            raise Crash
        return result

    async def fence(self) -> None:
        def fence() -> None:
            self._brokers.driver_epoch += 1
            self._epoch = self._brokers.driver_epoch

        self._step(fence)

    async def read(self) -> QueryState | None:
        return self._step(self._brokers.state)

    async def write(self, state: QueryState) -> None:
        def write() -> None:
            if self._epoch != self._brokers.driver_epoch:
                raise InvalidProducerEpoch("another driver")
            self._brokers.states.append(encode_state(state))

        self._step(write)

    async def open_transactions(self) -> list[OpenTransaction]:
        def open_ones() -> list[OpenTransaction]:
            prefix = attempts_prefix(PREFIX, QUERY)
            return [
                OpenTransaction(name, known.producer)
                for name, known in self._brokers.ids.items()
                if name.startswith(prefix) and known.rows is not None
            ]

        return self._step(open_ones)

    async def is_open(self, transaction: OpenTransaction) -> bool:
        known = self._brokers.ids[transaction.transactional_id]
        return self._step(lambda: known.producer == transaction.producer and known.rows is not None)

    async def end(self, transaction: OpenTransaction, *, is_commit: bool, bumps: bool) -> Producer | None:
        return self._step(lambda: self._brokers.end(transaction, is_commit=is_commit))

    async def renew(self, transactional_id: str) -> Producer:
        return self._step(lambda: self._brokers.begin(transactional_id))
