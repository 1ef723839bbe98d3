"""Brokers of a model, with crashes: what they keep of a query's transactions and decisions, and which rows are seen."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
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
    """What its coordinator knows."""

    producer: Producer
    is_open: bool = False
    last_end: tuple[Producer, bool] | None = None


@dataclass
class Log:
    """What the leader of the one partition knows: no more than it is sent."""

    undecided: dict[int, list[Row]] = field(default_factory=dict)
    """Behind no marker yet, by producer id: readers of committed records wait here."""
    epochs: dict[int, int] = field(default_factory=dict)
    """Of the newest marker, by producer id."""
    visible: list[Row] = field(default_factory=list)

    def append(self, producer: Producer, row: Row) -> None:
        if producer.epoch < self.epochs.get(producer.id, 0):
            raise InvalidProducerEpoch(str(producer))
        self.undecided.setdefault(producer.id, []).append(row)

    def mark(self, producer: Producer, *, is_commit: bool) -> None:
        rows = self.undecided.pop(producer.id, [])
        if is_commit:
            self.visible += rows
        self.epochs[producer.id] = producer.epoch


@dataclass
class Brokers:
    """Below the level at which an end raises the epoch, a leader does not ask whether a transaction is open."""

    bumps: bool
    ids: dict[str, TransactionalId] = field(default_factory=dict)
    states: list[bytes] = field(default_factory=list)
    claims: dict[OpenTransaction, str] = field(default_factory=dict)
    driver_epoch: int = 0
    log: Log = field(default_factory=Log)
    tokens: int = 0
    producers: int = 0
    now_ms: int = 0

    @property
    def visible(self) -> list[Row]:
        """To readers of committed records."""
        return self.log.visible

    @property
    def unended(self) -> bool:
        """Whether they wait for a transaction, or for one that nobody knows to be there."""
        return bool(self.log.undecided) or any(known.is_open for known in self.ids.values())

    # What a task does

    def begin(self, transactional_id: str) -> Producer:
        known = self.ids.get(transactional_id)
        if known is None:
            self.producers += 1
            known = self.ids[transactional_id] = TransactionalId(Producer(self.producers, 0))
        else:
            self._fence(known)
            known.producer = _next(known.producer)
        return known.producer

    def join(self, mine: OpenTransaction) -> None:
        known = self.ids[mine.transactional_id]
        if known.producer != mine.producer:
            raise InvalidProducerEpoch(mine.transactional_id)
        known.is_open = True

    def produce(self, mine: OpenTransaction, row: Row) -> None:
        if self.bumps:
            self.join(mine)
        self.log.append(mine.producer, row)

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
        if known.last_end == (mine.producer, is_commit) and not known.is_open:
            return known.producer if self.bumps else None
        if known.producer != mine.producer or not known.is_open:
            raise TransactionLost(mine.transactional_id)
        known.is_open, known.last_end = False, (mine.producer, is_commit)
        if self.bumps:
            known.producer = _next(mine.producer)
        self.log.mark(known.producer, is_commit=is_commit)
        return known.producer if self.bumps else None

    def time_out(self, mine: OpenTransaction) -> None:
        self._fence(self.ids[mine.transactional_id])

    def _fence(self, known: TransactionalId) -> None:
        """Aborts what is open, in a new epoch."""
        if known.is_open:
            known.is_open, known.producer = False, _next(known.producer)
            self.log.mark(known.producer, is_commit=False)
        known.last_end = None


def _next(producer: Producer) -> Producer:
    return Producer(producer.id, producer.epoch + 1)


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
    has_joined: bool = False

    def write(self) -> OpenTransaction:
        known = self.brokers.ids[self.transaction.transactional_id]
        assert not known.is_open or known.producer != self.transaction.producer, "two attempts share a transaction"
        self.brokers.join(self.transaction)
        self.has_joined = True
        self.produce()
        return self.transaction

    def produce(self) -> None:
        """A request of an attempt that has joined its transaction. It may come late."""
        assert self.has_joined
        self.brokers.produce(self.transaction, (self.name.batch, self.partition))


class ModelLedger:
    """Counts its steps; crashes before or after one of them, or never."""

    timeout_ms = TIMEOUT_MS

    def __init__(
        self,
        brokers: Brokers,
        crash_at: int = -1,
        *,
        is_done: bool = False,
        meanwhile: Mapping[int, Callable[[], None]] = MappingProxyType({}),
    ) -> None:
        """What others do `meanwhile`, after so many steps."""
        self._brokers = brokers
        self._meanwhile = meanwhile
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
        self._meanwhile.get(self.steps, lambda: None)()
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
                if name.startswith(prefix) and known.is_open
            ]

        return self._step(open_ones)

    async def is_open(self, transaction: OpenTransaction) -> bool:
        known = self._brokers.ids[transaction.transactional_id]
        return self._step(lambda: known.producer == transaction.producer and known.is_open)

    async def end(self, transaction: OpenTransaction, *, is_commit: bool, bumps: bool) -> Producer | None:
        return self._step(lambda: self._brokers.end(transaction, is_commit=is_commit))

    async def renew(self, transactional_id: str) -> Producer:
        return self._step(lambda: self._brokers.begin(transactional_id))
