"""An anomaly of each kind, planted in a history that has none.

Each raises LookupError where the history has no place for it.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from typing import TypeVar

from tests.history.anomalies import Kind
from tests.history.events import (
    Assigned,
    EndSeen,
    History,
    Partition,
    Read,
    Send,
    SendOutcome,
    TransactionOutcome,
)

T = TypeVar("T")
Planting = Callable[[History, Random], None]


def _one(random: Random, candidates: Iterable[T]) -> T:
    """Raises IndexError, a LookupError, where there is none."""
    return random.choice(list(candidates))


def _visible(history: History, send: Send) -> bool:
    return send.outcome is SendOutcome.ACKED and history.final[send.partition].get(send.offset or 0) == send.value


def _without(history: History, partition: Partition, offset: int) -> None:
    left = {at: value for at, value in history.final[partition].items() if at != offset}
    history.final = {**history.final, partition: left}


def _with(history: History, partition: Partition, offset: int, value: bytes) -> None:
    history.final = {**history.final, partition: {**history.final[partition], offset: value}}


def lose(history: History, random: Random) -> None:
    send = _one(
        random,
        (one for one in history.sends if _visible(history, one) and max(history.final[one.partition]) != one.offset),
    )
    _without(history, send.partition, send.offset or 0)


def lose_unseen(history: History, random: Random) -> None:
    read = {move.partition for move in history.moves if isinstance(move, Read)}
    last = _one(
        random,
        (
            one
            for one in history.sends
            if _visible(history, one) and max(history.final[one.partition]) == one.offset and one.partition not in read
        ),
    )
    _without(history, last.partition, last.offset or 0)


def write_twice(history: History, random: Random) -> None:
    send = _one(random, (one for one in history.sends if _visible(history, one)))
    _with(history, send.partition, max(history.final[send.partition]) + 10, send.value)


def change_a_value(history: History, random: Random) -> None:
    read = _one(random, (move for move in history.moves if isinstance(move, Read) and _is_there(history, move)))
    _with(history, read.partition, read.offset, b"another")


def _is_there(history: History, read: Read) -> bool:
    return read.offset in history.final[read.partition]


def _pairs(history: History) -> list[tuple[int, int]]:
    """Numbers of sends of one producer to one partition, both visible."""
    places: dict[tuple[str, Partition], list[int]] = {}
    for number, send in enumerate(history.sends):
        if _visible(history, send):
            places.setdefault((send.producer, send.partition), []).append(number)
    return [(some[0], some[-1]) for some in places.values() if len(some) > 1]


def reorder(history: History, random: Random) -> None:
    """As if they had been sent the other way round: nobody was told otherwise."""
    first, last = _one(random, _pairs(history))
    history.sends[first], history.sends[last] = history.sends[last], history.sends[first]


def tell_a_lower_offset(history: History, random: Random) -> None:
    first, last = _one(random, _pairs(history))
    history.sends[last] = replace(history.sends[last], offset=history.sends[first].offset)


def overtake(history: History, random: Random) -> None:
    """A send of another producer that began after both was told an offset between them."""
    first, last = _one(random, _pairs(history))
    before, after = history.sends[first], history.sends[last]
    began_ms = max(send.ended_ms for send in history.sends) + 1
    history.sends.append(
        Send("late", before.partition, b"late", SendOutcome.ACKED, (after.offset or 0) - 1, began_ms, began_ms + 1)
    )


def _runs(history: History) -> list[tuple[int, int]]:
    """Numbers of two reads of a reader in a partition, one after the other, with nothing in between."""
    last: dict[tuple[str, Partition], int] = {}
    found: list[tuple[int, int]] = []
    for number, move in enumerate(history.moves):
        key = move.reader, move.partition
        if isinstance(move, Assigned):
            last.pop(key, None)
            continue
        if key in last:
            found.append((last[key], number))
        last[key] = number
    return found


def read_again(history: History, random: Random) -> None:
    first, second = _one(random, _runs(history))
    history.moves.insert(second + 1, history.moves[first])


def skip(history: History, random: Random) -> None:
    candidates = [
        middle
        for (_, middle), (other, _) in ((one, two) for one in _runs(history) for two in _runs(history))
        if middle == other and isinstance(read := history.moves[middle], Read) and _is_there(history, read)
    ]
    del history.moves[_one(random, candidates)]


def read_what_was_aborted(history: History, random: Random) -> None:
    send = _one(random, (one for one in history.sends if one.transaction is not None and _is_aborted(history, one)))
    history.moves.append(Read("new", send.partition, send.offset or 0, send.value))


def _is_aborted(history: History, send: Send) -> bool:
    return history.outcome_of(send.transaction or "") is TransactionOutcome.ABORTED


def read_what_was_refused(history: History, random: Random) -> None:
    send = _one(random, (one for one in history.sends if one.outcome is SendOutcome.FAILED))
    history.moves.append(Read("new", send.partition, 10_000, send.value))


def read_what_nobody_sent(history: History, random: Random) -> None:
    history.moves.append(Read("new", _one(random, history.final), 10_000, b"damaged"))


def tear(history: History, random: Random) -> None:
    """The client never heard of its commit, and one of the values is missing."""
    written: dict[str, list[Send]] = {}
    for send in history.sends:
        if send.transaction is not None:
            written.setdefault(send.transaction, []).append(send)
    committed = TransactionOutcome.COMMITTED
    transaction = _one(
        random, (name for name, sends in written.items() if len(sends) > 1 and history.transactions[name] is committed)
    )
    del history.transactions[transaction]
    send = _one(random, written[transaction])
    _without(history, send.partition, send.offset or 0)


def close_a_circle(history: History, random: Random) -> None:
    """Of three transactions each read what the next one wrote."""
    partition = _one(random, history.final)
    names = [f"circling {number}" for number in range(3)]
    start = max(history.final[partition], default=0) + 10
    for number, name in enumerate(names):
        value = name.encode()
        history.transactions[name] = TransactionOutcome.COMMITTED
        history.sends.append(
            Send(name, partition, value, SendOutcome.ACKED, start + number, 1e6 + number, 1e6 + number, name)
        )
        _with(history, partition, start + number, value)
        reader = names[number - 1]
        history.moves.append(Read(f"reader of {reader}", partition, start + number, value, 1e6, reader))


def tell_a_lower_end(history: History, random: Random) -> None:
    end = _one(random, (one for one in history.ends if one.offset > 0))
    history.ends.append(EndSeen("late", end.partition, end.offset - 1, end.ended_ms + 1, end.ended_ms + 2))


PLANTINGS: dict[Planting, Kind] = {
    lose: Kind.LOST,
    lose_unseen: Kind.UNSEEN,
    write_twice: Kind.DUPLICATE,
    change_a_value: Kind.INCONSISTENT_OFFSETS,
    reorder: Kind.REORDERED,
    tell_a_lower_offset: Kind.NONMONOTONIC_SEND,
    overtake: Kind.NONMONOTONIC_SEND,
    read_again: Kind.NONMONOTONIC_POLL,
    skip: Kind.POLL_SKIP,
    read_what_was_aborted: Kind.ABORTED_READ,
    read_what_was_refused: Kind.ABORTED_READ,
    read_what_nobody_sent: Kind.UNKNOWN_VALUE,
    tear: Kind.TORN,
    close_a_circle: Kind.CYCLE,
    tell_a_lower_end: Kind.END_WENT_BACK,
}
