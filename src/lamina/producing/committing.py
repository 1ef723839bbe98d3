"""One batch of a query becomes visible, once, whatever was tried before.

Owns the order of the steps, so that a crash between any two of them leaves what the next run can finish:

1. fence: no other driver of this query can decide from now on;
2. look what is open, then read what was decided; an older batch that is decided is finished first, and looked again;
3. if this batch is undecided, check that its transactions are still open, and write the decision. Before it nothing is
   visible; after it, whoever comes finishes it, with this batch or with a later one;
4. commit the transactions that were decided, abort the others that were open before the decision, in a way that
   refuses what their attempts still send;
5. write that the batch has ended, with the ids for the next one in new epochs.

A transaction of a later run is never aborted: what is aborted was open before a decision that no later run had fenced.
A driver that failed may not know whether it has decided; so it, too, fences and reads before it aborts anything.
Must not know how any of this is asked of brokers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeVar

from lamina.errors import KafkaError
from lamina.peer.transacting import Producer
from lamina.producing.decisions import (
    BatchName,
    OpenTransaction,
    QueryState,
    Status,
    decide,
    ended,
    idle,
    lost,
    slot_in,
    to_abort,
)
from lamina.producing.errors import TransactionLost, WriteError

_AT_ONCE: Final = 32

T = TypeVar("T")
R = TypeVar("R")


class Ledger(Protocol):
    """What brokers keep of one query."""

    timeout_ms: int
    """Of its transactions."""
    now_ms: Callable[[], int]
    """Wall time."""

    async def fence(self) -> None:
        """Whoever fenced before can write no more."""

    async def read(self) -> QueryState | None:
        """The newest state that was written."""

    async def write(self, state: QueryState) -> None: ...

    async def open_transactions(self) -> list[OpenTransaction]:
        """Of all attempts at any batch of the query."""

    async def is_open(self, transaction: OpenTransaction) -> bool: ...

    async def end(self, transaction: OpenTransaction, *, is_commit: bool, bumps: bool) -> Producer | None:
        """Whom its id has afterwards, if that is told. May be repeated. Raises `TransactionLost`."""

    async def renew(self, transactional_id: str) -> Producer:
        """Its id in a new epoch. What was open there is aborted."""


async def commit_batch(ledger: Ledger, name: BatchName, written: Sequence[OpenTransaction], *, bumps: bool) -> None:
    """Raises `WriteError` or `KafkaError`; then the batch is visible whole, in part and decided, or not at all."""
    await ledger.fence()
    open_before = await ledger.open_transactions()
    state = await ledger.read()
    if state is not None and state.status is Status.DECIDED and state.batch < name.batch:
        await _finish(ledger, name.query, state, losers=(), kept=written)
        open_before = await ledger.open_transactions()
        state = await ledger.read()
    decided = decide(state, name, written, bumps=bumps, timeout_ms=ledger.timeout_ms)
    if decided is not state:
        await _refuse_dead(ledger, name, written)
        await ledger.write(decided)
    if decided.status is Status.ENDED:
        # An earlier run did all; what this one wrote meanwhile goes.
        await _abort_all(ledger, open_before, bumps=bumps)
        return
    await _finish(ledger, name.query, decided, to_abort(open_before, decided))


async def abort_batch(ledger: Ledger, name: BatchName, written: Sequence[OpenTransaction], *, bumps: bool) -> None:
    """After a failure, unless it came after the decision: then the next run finishes the batch.

    As far as possible: what remains open ends by its timeout, or with the next batch.
    """
    await ledger.fence()
    state = await ledger.read()
    if state is None or state.batch < name.batch:
        # Attempts that failed left transactions open that nobody has told of.
        open_ones = list(dict.fromkeys([*written, *await ledger.open_transactions()]))
        await _abort_all(ledger, open_ones if state is None else to_abort(open_ones, state), bumps=bumps)


async def _finish(
    ledger: Ledger,
    query: str,
    decided: QueryState,
    losers: Sequence[OpenTransaction],
    kept: Sequence[OpenTransaction] = (),
) -> None:
    """``kept`` are of a later batch: their ids are in use."""
    bumps = decided.bumps
    try:
        after = await _each(decided.transactions, lambda one: ledger.end(one, is_commit=True, bumps=bumps))
    except TransactionLost as error:
        # Whoever comes with a later batch finds that it was told.
        await ledger.write(lost(decided))
        raise TransactionLost(
            f"batch {decided.batch} of query {query} was decided, but a part of it is lost: {error}; the rows of "
            "that task are missing. To write the whole batch again, with the rows of its other tasks twice, start the "
            "query once with exactlyOnce=false"
        ) from None
    aborted = await _abort_all(ledger, losers, bumps=bumps)
    used = [*zip(decided.transactions, after, strict=True), *aborted]
    if not all(producer for _, producer in used):
        # Below that level an id whose epoch was raised cannot be told from one that was lost: so this is written first.
        await ledger.write(ended(decided, {}, ledger.now_ms()))
    in_use = [*kept, *(one for one, _ in used)]
    waiting = idle(decided, (one.transactional_id for one in in_use))
    pool = await _renewed(ledger, [*used, *((one, None) for one in waiting.values())])
    await ledger.write(ended(decided, pool, ledger.now_ms(), (one.transactional_id for one, _ in used)))


async def _refuse_dead(ledger: Ledger, name: BatchName, written: Sequence[OpenTransaction]) -> None:
    alive = await _each(written, ledger.is_open)
    for one, is_alive in zip(written, alive, strict=True):
        if not is_alive:
            raise WriteError(
                f"batch {name.batch} of query {name.query} is not visible: the transaction of {one.transactional_id} "
                f"ended before all tasks were done, most likely by its timeout of {ledger.timeout_ms} ms; raise "
                "kafka.transaction.timeout.ms, and transaction.max.timeout.ms of the brokers if need be"
            )


async def abort(ledger: Ledger, one: OpenTransaction, *, bumps: bool) -> tuple[bool, Producer | None]:
    """Whether it could be done, and whom the id has then, if that is told.

    An attempt may still be sending. So the abort raises the epoch, and what comes later is refused: where `bumps`, an
    end does that; elsewhere a new producer does, which also aborts what is open.
    """
    try:
        if bumps:
            return True, await ledger.end(one, is_commit=False, bumps=True)
        if await ledger.is_open(one):
            return True, await ledger.renew(one.transactional_id)
    except (KafkaError, TransactionLost):
        pass
    return False, None


async def _abort_all(
    ledger: Ledger, losers: Sequence[OpenTransaction], *, bumps: bool
) -> list[tuple[OpenTransaction, Producer | None]]:
    """Those that could be aborted, with whom their ids have then. The others are tried again with the next batch."""
    done = await _each(losers, lambda one: abort(ledger, one, bumps=bumps))
    return [(one, after) for one, (is_done, after) in zip(losers, done, strict=True) if is_done]


async def _renewed(
    ledger: Ledger, used: Sequence[tuple[OpenTransaction, Producer | None]]
) -> dict[str, OpenTransaction]:
    """By slot. The first one of a slot is kept; an id that cannot be renewed is let go."""

    async def renew(one: tuple[OpenTransaction, Producer | None]) -> Producer | None:
        transaction, after = one
        if after is not None:
            return after
        try:
            return await ledger.renew(transaction.transactional_id)
        except KafkaError:
            return None

    producers = await _each(used, renew)
    pool: dict[str, OpenTransaction] = {}
    for (transaction, _), producer in zip(used, producers, strict=True):
        if producer is not None:
            slot = slot_in(transaction.transactional_id)
            pool.setdefault(slot, OpenTransaction(transaction.transactional_id, producer))
    return pool


async def _each(ones: Sequence[T], work: Callable[[T], Awaitable[R]]) -> list[R]:
    """In their order, some at a time. The first error is raised when all are done: none is left running."""
    at_once = asyncio.Semaphore(_AT_ONCE)

    async def one_of(one: T) -> R:
        async with at_once:
            return await work(one)

    results = await asyncio.gather(*(one_of(one) for one in ones), return_exceptions=True)
    found: list[R] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        found.append(result)
    return found
