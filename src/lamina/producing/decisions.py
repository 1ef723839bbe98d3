"""What is known of the batches of a query, and what follows from it.

Owns the state of a query as it is kept in the decision topic, under the query's name: the newest batch of which
something was decided, and the transactional ids that its tasks may use again. A batch is undecided, then decided, which
names the transactions that are it and is never taken back, then ended, when all of these are committed, or lost, when
one of them cannot be. The next batch is decided after that. Pure: every driver and every task reads the same state and
draws the same conclusions from it.

Transactional ids are used again without being asked for again: only the driver raises their epochs, after the batch in
which they were used, and hands them to the tasks of the next one. So a task that is late cannot end, by asking, a
transaction that is not its own. Two attempts may find the same id in the state, where Spark runs a stage again or
another run of the query is still alive: whoever claims it first has it, and the other one takes a new id. An id that no
batch has used for a while is let go.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from lamina.peer.transacting import Producer
from lamina.producing.errors import WriteError

_VERSION: Final = 1
_POOL_LIVES_MS: Final = 12 * 60 * 60 * 1000
"""Brokers forget an idle producer after a day (``producer.id.expiration.ms``), and a transactional id after a week."""
_MOST_IDLE_BATCHES: Final = 100
BYTES_PER_TASK: Final = 96
"""No more does a task add to a state as it is stored: compressed, in the decision and in the pool."""
_SLOT_AND_TOKEN: Final = re.compile(r"\d+\.\d+-[^-]+")


class BatchName(NamedTuple):
    """Which batch of which query."""

    query: str
    batch: int
    writer: str = ""
    """What tells it from others that come under the same name, for people; empty where that is not known."""


class Slot(NamedTuple):
    """Which attempt at which task. A stage that is run again counts its attempts from the start."""

    partition: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.partition}.{self.attempt}"


class OpenTransaction(NamedTuple):
    """What one attempt wrote and left open."""

    transactional_id: str
    producer: Producer


class Status(StrEnum):
    DECIDED = "decided"
    LOST = "lost"
    """Decided, but a part of it cannot be committed any more: a person was told so."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class QueryState:
    batch: int
    status: Status
    transactions: tuple[OpenTransaction, ...]
    """What the batch is."""
    bumps: bool
    """Whether they were written in the level of the protocol at which an end raises the epoch."""
    timeout_ms: int
    """Of the transactions of the ids in the pool: the brokers keep it with an id."""
    pool: Mapping[str, OpenTransaction] = field(default_factory=dict)
    """By slot: an id for the attempt in this slot of the next batch, with the producer that it has if it claims it."""
    pooled_at_ms: int = 0
    writer: str = ""
    """Who wrote the batch, as its name said."""
    idle_batches: Mapping[str, int] = field(default_factory=dict)
    """By slot: how many batches in a row have not used its id, where there are any."""


class StateUnreadable(WriteError):
    """The decision topic holds what this version cannot read."""


# Tasks


class WriteNothing(NamedTuple):
    """The batch is decided: what it consists of is known, and is not this attempt's."""


class UsePooled(NamedTuple):
    """If nobody else has claimed it."""

    transaction: OpenTransaction


class UseNew(NamedTuple):
    """Take an id that nobody has had."""


def plan_attempt(
    state: QueryState | None, name: BatchName, slot: Slot, timeout_ms: int, now_ms: int
) -> WriteNothing | UsePooled | UseNew:
    """Raises `WriteError` for a batch that is older than the newest, or is another writer's."""
    if state is not None:
        _refuse_strange(state, name)
        if state.batch == name.batch:
            return WriteNothing()
        pooled = state.pool.get(str(slot))
        is_fresh = state.status is Status.ENDED and now_ms - state.pooled_at_ms < _POOL_LIVES_MS
        if pooled is not None and is_fresh and state.timeout_ms == timeout_ms:
            return UsePooled(pooled)
    return UseNew()


# The driver


def decide(
    state: QueryState | None,
    name: BatchName,
    written: Iterable[OpenTransaction],
    *,
    bumps: bool,
    timeout_ms: int,
) -> QueryState:
    """The state in which the batch is decided: the given one, unchanged, where it was decided before.

    Raises `WriteError` for a batch that is older than the newest, or is another writer's.
    """
    if state is not None:
        _refuse_strange(state, name)
        if state.batch == name.batch:
            return state
        assert state.status is not Status.DECIDED, "it has to be finished first"
    decided = QueryState(name.batch, Status.DECIDED, tuple(written), bumps, timeout_ms, writer=name.writer)
    if state is None or state.timeout_ms != timeout_ms:
        return decided
    return replace(decided, pool=state.pool, idle_batches=state.idle_batches)


def lost(state: QueryState) -> QueryState:
    """After one of its transactions could not be committed."""
    return replace(state, status=Status.LOST)


def ended(state: QueryState, pool: Mapping[str, OpenTransaction], now_ms: int, used: Iterable[str] = ()) -> QueryState:
    """After all its transactions are committed. ``used`` are the transactional ids in which this batch was written."""
    taken = set(used)
    idle_batches = {
        slot: state.idle_batches.get(slot, 0) + 1 for slot, one in pool.items() if one.transactional_id not in taken
    }
    let_go = {slot for slot, batches in idle_batches.items() if batches > _MOST_IDLE_BATCHES}
    return replace(
        state,
        status=Status.ENDED,
        transactions=(),
        pool={slot: one for slot, one in pool.items() if slot not in let_go},
        pooled_at_ms=now_ms,
        idle_batches={slot: batches for slot, batches in idle_batches.items() if slot not in let_go},
    )


def without_pool(state: QueryState) -> QueryState:
    """The next batch takes new ids."""
    return replace(state, pool={}, idle_batches={})


def to_abort(open_ones: Iterable[OpenTransaction], decided: QueryState) -> list[OpenTransaction]:
    """What attempts left open that are not part of the batch."""
    kept = set(decided.transactions)
    return [one for one in open_ones if one not in kept]


def idle(decided: QueryState, used: Iterable[str]) -> dict[str, OpenTransaction]:
    """Ids that were handed to this batch and not used. A late attempt may yet use them: they need a new epoch too."""
    taken = set(used)
    return {slot: one for slot, one in decided.pool.items() if one.transactional_id not in taken}


def _refuse_strange(state: QueryState, name: BatchName) -> None:
    if name.batch < state.batch:
        raise WriteError(
            f"query {name.query} has written batch {state.batch} already and now comes with batch {name.batch}: "
            "batchId must rise from write to write; the checkpoint of a stream was set back, or is a copy of another "
            "query's. Give this query a name of its own with the option queryId, or write with exactlyOnce=false"
        )
    if name.batch == state.batch and name.writer != state.writer and name.writer and state.writer:
        raise WriteError(
            f"batch {name.batch} of query {name.query} was written by another writer, {state.writer}; this one is "
            f"{name.writer}. Give each of them a name of its own with the option queryId"
        )


# Transactional ids


def driver_id(prefix: str, query: str) -> str:
    """Of the one that writes decisions."""
    return f"{prefix}-{query}-driver"


def attempts_prefix(prefix: str, query: str) -> str:
    """With which the ids of all attempts begin."""
    return f"{prefix}-{query}-task-"


def new_attempt_id(prefix: str, name: BatchName, slot: Slot, token: str) -> str:
    """`token` is drawn for it, so that nobody else has it. No "-" is in it."""
    return f"{attempts_prefix(prefix, name.query)}{slot}-{token}"


def is_attempt_at(prefix: str, query: str, transactional_id: str) -> bool:
    """Not at a query whose name goes on where this one ends."""
    begin = attempts_prefix(prefix, query)
    return transactional_id.startswith(begin) and _SLOT_AND_TOKEN.fullmatch(transactional_id, len(begin)) is not None


def slot_in(transactional_id: str) -> str:
    """For which slot an id was drawn."""
    return transactional_id.rsplit("-", 2)[1]


# As bytes


def encode_state(state: QueryState) -> bytes:
    return json.dumps(
        {
            "version": _VERSION,
            "batch": state.batch,
            "status": state.status.value,
            "bumps": state.bumps,
            "timeout_ms": state.timeout_ms,
            "transactions": [_flat(one) for one in state.transactions],
            "pooled_at_ms": state.pooled_at_ms,
            "pool": {slot: _flat(one) for slot, one in state.pool.items()},
            "writer": state.writer,
            "idle_batches": state.idle_batches,
        },
        separators=(",", ":"),
    ).encode()


def decode_state(data: bytes) -> QueryState:
    try:
        told = json.loads(data)
        if told["version"] > _VERSION:
            raise StateUnreadable(
                f"the decision topic holds a state of version {told['version']}; this Lamina reads up to {_VERSION}"
            )
        return QueryState(
            int(told["batch"]),
            Status(told["status"]),
            tuple(_transaction(one) for one in told["transactions"]),
            bool(told["bumps"]),
            int(told["timeout_ms"]),
            {str(slot): _transaction(one) for slot, one in told["pool"].items()},
            int(told["pooled_at_ms"]),
            str(told.get("writer", "")),
            {str(slot): int(batches) for slot, batches in told.get("idle_batches", {}).items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StateUnreadable(f"the decision topic holds what is no decision ({type(error).__name__})") from None


def _flat(one: OpenTransaction) -> list[Any]:
    return [one.transactional_id, one.producer.id, one.producer.epoch]


def _transaction(flat: Any) -> OpenTransaction:
    transactional_id, producer_id, epoch = flat
    return OpenTransaction(str(transactional_id), Producer(int(producer_id), int(epoch)))
