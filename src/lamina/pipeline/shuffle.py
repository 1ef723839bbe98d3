"""The keys of a log as packed columns that Spark can sort by their hash: for logs with more keys than a task may hold.

A row that Spark moves holds the keys of one range of one segment that fall into one bucket: 21 bytes a record, no key
and no value. Keys are compared by 128 bits of a hash with a secret key: of n keys two collide with odds of about
n² / 2^129, for a thousand million keys 1 in 10^21; then the older of the two is lost. Must not know Spark.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lamina.cleaning.contract import Plan
from lamina.cleaning.header_scan import SegmentVerdicts
from lamina.cleaning.key_hashes import SegmentKeys, find_superseded, scan_segment
from lamina.cleaning.limits import Meter, unmetered

ENTRY_BYTES = 8 + 8 + 4 + 1
_REDUCE_BYTES = 96
"""What a record takes while a bucket is reduced: its packed columns twice, and slots of a table."""
_SCAN_BYTES = 400
"""What a record may take while its range is scanned, with the rows that Spark buffers before it sends them."""
_FEWEST_RANGE_RECORDS = 1 << 14
_LEAST_BUCKET_BYTES = 1 << 20
"""A task for less memory than this costs more than it saves."""
_MOST_BUCKETS = 1 << 14

Ordinals = npt.NDArray[np.uint32]
Packed = tuple[int, int, bytes]
"""Segment, range in it, and columns; without a range (-1), the numbers of records that are superseded already."""
Superseded = tuple[int, bytes]
"""Segment and the numbers of its superseded records."""

SUPERSEDED_ALREADY = -1
FAILED = -2
"""In place of a range, and later of a segment: then the bytes say why a task failed."""
KEYS = -1
"""In place of a segment: then the bytes are how many keys a bucket had."""


class Columns(NamedTuple):
    firsts: npt.NDArray[np.uint64]
    seconds: npt.NDArray[np.uint64]
    ordinals: Ordinals
    is_dirty: npt.NDArray[np.uint8]

    def cut(self, start: int, end: int) -> "Columns":
        return Columns(
            self.firsts[start:end], self.seconds[start:end], self.ordinals[start:end], self.is_dirty[start:end]
        )


def bucket_bits(records: int, memory_limit_bytes: int, slots: int) -> int:
    """How many bits of a hash name its bucket, so that one bucket fits the memory of one task."""
    wanted = max(-(-records * _REDUCE_BYTES // max(memory_limit_bytes, _LEAST_BUCKET_BYTES)), slots)
    return (min(wanted, _MOST_BUCKETS) - 1).bit_length()


def pack(columns: Columns) -> bytes:
    return b"".join(column.tobytes() for column in columns)


def unpack(data: bytes) -> Columns:
    count = len(data) // ENTRY_BYTES
    return Columns(
        np.frombuffer(data, np.uint64, count),
        np.frombuffer(data, np.uint64, count, 8 * count),
        np.frombuffer(data, np.uint32, count, 16 * count),
        np.frombuffer(data, np.uint8, count, 20 * count),
    )


def scan_into_buckets(
    plan: Plan, number: int, verdicts: SegmentVerdicts, bits: int, meter: Meter = unmetered
) -> Iterator[tuple[int, Packed]]:
    """The keys of one segment by bucket. What is superseded inside a range is found here and not sorted, so that a key
    of which there are many does not fill its bucket."""
    most_records = max(plan.memory_limit_bytes // _SCAN_BYTES, _FEWEST_RANGE_RECORDS)
    for part, keys in enumerate(scan_segment(plan, number, verdicts, most_records=most_records, meter=meter)):
        superseded = find_superseded(keys.firsts, keys.seconds, keys.is_dirty)
        if superseded.any():
            yield number & ((1 << bits) - 1), (number, SUPERSEDED_ALREADY, keys.ordinals[superseded].tobytes())
        for bucket, columns in _divide(keys, ~superseded, bits):
            yield bucket, (number, part, pack(columns))


def _divide(keys: SegmentKeys, stays: npt.NDArray[np.bool_], bits: int) -> Iterator[tuple[int, Columns]]:
    firsts = keys.firsts[stays]
    # The lowest bits: those of a bucket must not agree in the upper ones, by which they find their slot in a table.
    buckets = (firsts & np.uint64((1 << bits) - 1)).astype(np.uint16)
    order = np.argsort(buckets, kind="stable")
    columns = Columns(
        firsts[order], keys.seconds[stays][order], keys.ordinals[stays][order], keys.is_dirty[stays][order]
    )
    found, starts = np.unique(buckets[order], return_index=True)
    ends = [*starts[1:].tolist(), len(order)]
    for bucket, start, end in zip(found.tolist(), starts.tolist(), ends, strict=True):
        yield bucket, columns.cut(start, end)


def reduce_bucket(rows: Iterable[Packed], group_of: Sequence[int]) -> Iterator[tuple[int, Superseded]]:
    """Which records of a bucket are superseded, for the groups that they are in; and how many keys it had."""
    packed: list[Packed] = []
    for row in rows:
        if row[1] == SUPERSEDED_ALREADY:
            yield group_of[row[0]], (row[0], row[2])
        elif row[1] == FAILED:
            yield 0, (FAILED, row[2])
        else:
            packed.append(row)
    if not packed:
        return
    packed.sort(key=lambda row: row[:2])
    parts = [unpack(row[2]) for row in packed]
    whole = Columns(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    superseded = find_superseded(whole.firsts, whole.seconds, whole.is_dirty)
    keys = int(np.count_nonzero((whole.is_dirty != 0) & ~superseded))
    yield 0, (KEYS, keys.to_bytes(8, "big"))
    start = 0
    for (segment, _, _), part in zip(packed, parts, strict=True):
        end = start + len(part.ordinals)
        marks = superseded[start:end]
        if marks.any():
            yield group_of[segment], (segment, part.ordinals[marks].tobytes())
        start = end


class Gathered(NamedTuple):
    """What has come for one group."""

    masks: dict[int, npt.NDArray[np.uint8]]
    """One bit a record for each segment."""
    keys: int
    failure: bytes | None


def gather_group(rows: Iterable[Superseded], group: Sequence[int], verdicts: Sequence[SegmentVerdicts]) -> Gathered:
    """One byte a record is held meanwhile: numbers of four, kept until all have come, would be more."""
    marks = {number: np.zeros(verdicts[number].record_count, np.uint8) for number in group}
    keys = 0
    failure = None
    for segment, data in rows:
        if segment == KEYS:
            keys += int.from_bytes(data, "big")
        elif segment == FAILED:
            failure = data
        elif segment in marks:
            marks[segment][np.frombuffer(data, np.uint32)] = 1
    masks = {number: np.packbits(marks.pop(number), bitorder="little") for number in group}
    return Gathered(masks, keys, failure)
