"""Everything goes forward: the offsets that producers are told, the order of their values, the ways of readers."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from tests.history.anomalies import Anomaly, Kind, shown
from tests.history.events import Assigned, EndSeen, History, Partition, Read, SendOutcome


def order_anomalies(history: History) -> Iterator[Anomaly]:
    yield from _reordered(history)
    yield from _nonmonotonic_sends(history)
    yield from _polls(history)
    yield from _ends(history.ends)


def _reordered(history: History) -> Iterator[Anomaly]:
    numbers = {(send.partition, send.value): (send.producer, number) for number, send in enumerate(history.sends)}
    for partition, records in history.final.items():
        newest: dict[str, tuple[int, bytes, int]] = {}
        for offset, value in sorted(records.items()):
            if (partition, value) not in numbers:
                continue
            producer, number = numbers[partition, value]
            before = newest.get(producer)
            if before is not None and number < before[0]:
                what = f"{producer} sent {shown(value)} before {shown(before[1])}"
                where = f"and they lie at {offset} and {before[2]}"
                yield Anomaly(Kind.REORDERED, f"{_name(partition)}: {what}, {where}")
            else:
                newest[producer] = number, value, offset


class _Told(NamedTuple):
    """An offset of a partition that somebody was told between two moments."""

    partition: Partition
    offset: int
    began_ms: float
    ended_ms: float
    what: str


def _nonmonotonic_sends(history: History) -> Iterator[Anomaly]:
    last: dict[tuple[str, Partition], _Told] = {}
    acked: list[_Told] = []
    for send in history.sends:
        if send.outcome is not SendOutcome.ACKED or send.offset is None or not send.is_lasting:
            continue
        key = send.producer, send.partition
        told = _Told(
            send.partition, send.offset, send.began_ms, send.ended_ms, f"{shown(send.value)} of {send.producer}"
        )
        before = last.get(key)
        if before is not None and told.offset <= before.offset:
            what = f"{before.what} was told {before.offset}, and {told.what}, sent later, {told.offset}"
            yield Anomaly(Kind.NONMONOTONIC_SEND, f"{_name(send.partition)}: {what}")
        last[key] = told
        acked.append(told)
    for before, later in _overtaken(acked, is_equal_fine=False):
        what = f"{later.what} was sent at {later.began_ms:.0f} ms and told {later.offset}, when {before.what} had been "
        what += f"told {before.offset} at {before.ended_ms:.0f} ms"
        yield Anomaly(Kind.NONMONOTONIC_SEND, f"{_name(later.partition)}: {what}")


def _ends(ends: list[EndSeen]) -> Iterator[Anomaly]:
    told = [_Told(one.partition, one.offset, one.began_ms, one.ended_ms, one.reader) for one in ends]
    for before, later in _overtaken(told, is_equal_fine=True):
        what = f"{later.what} was told {later.offset} at {later.ended_ms:.0f} ms, after {before.what} was told "
        what += f"{before.offset} at {before.ended_ms:.0f} ms"
        yield Anomaly(Kind.END_WENT_BACK, f"{_name(later.partition)}: {what}")


def _overtaken(told: list[_Told], *, is_equal_fine: bool) -> Iterator[tuple[_Told, _Told]]:
    """Each that began after a higher offset had been told, with that one."""
    by_partition: dict[Partition, list[_Told]] = defaultdict(list)
    for one in told:
        by_partition[one.partition].append(one)
    for some in by_partition.values():
        ended = sorted(some, key=lambda one: one.ended_ms)
        position = 0
        highest: _Told | None = None
        for one in sorted(some, key=lambda one: one.began_ms):
            while position < len(ended) and ended[position].ended_ms < one.began_ms:
                if highest is None or ended[position].offset > highest.offset:
                    highest = ended[position]
                position += 1
            if highest is not None and one.offset < highest.offset + (not is_equal_fine):
                yield highest, one


def _polls(history: History) -> Iterator[Anomaly]:
    visible = {partition: sorted(records) for partition, records in history.final.items()}
    expected: dict[tuple[str, Partition], int | None] = {}
    for move in history.moves:
        key = move.reader, move.partition
        if isinstance(move, Assigned):
            expected[key] = move.offset
            continue
        next_offset = expected.get(key)
        if next_offset is not None and move.offset < next_offset:
            yield Anomaly(Kind.NONMONOTONIC_POLL, f"{_read(move)}, where the next one was to be {next_offset}")
        elif next_offset is not None:
            offsets = visible.get(move.partition, [])
            skipped = offsets[bisect_left(offsets, next_offset) : bisect_left(offsets, move.offset)]
            if skipped:
                value = history.final[move.partition][skipped[0]]
                what = f"{_read(move)}, without {len(skipped)} before it, first {shown(value)} at {skipped[0]}"
                yield Anomaly(Kind.POLL_SKIP, what)
        expected[key] = move.offset + 1


def _read(read: Read) -> str:
    return f"{_name(read.partition)}: {read.reader} read {shown(read.value)} at {read.offset} ({read.at_ms:.0f} ms)"


def _name(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"
