"""Ranges of a partition that are alike in bytes, or within a number of records.

Owns where the cuts are, given how dense the partition is. Every range is of at least one offset; together they are the
whole, in order. Pure. Must not know where densities come from.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lamina.arrow.sampling import Piece
from lamina.topic_partition import TopicPartition

_UNBOUNDED = float("inf")


class OffsetRange(NamedTuple):
    start: int
    end: int


class Bounds(NamedTuple):
    """What is asked of ranges; None where nothing is."""

    min_ranges: int | None = None
    """How many of them at least, over all partitions."""
    max_records: int | None = None
    max_bytes: int | None = None

    @property
    def are_given(self) -> bool:
        return any(bound is not None for bound in self)


def cut_all(
    pieces: Mapping[TopicPartition, Sequence[Piece]], bounds: Bounds
) -> dict[TopicPartition, list[OffsetRange]]:
    """Each partition's share of ``min_ranges`` goes by its bytes."""
    sizes = {where: sum(piece.size_bytes for piece in parts) for where, parts in pieces.items()}
    total = sum(sizes.values())
    found = {}
    for where, parts in pieces.items():
        max_bytes = _UNBOUNDED if bounds.max_bytes is None else float(bounds.max_bytes)
        max_records = _UNBOUNDED if bounds.max_records is None else float(bounds.max_records)
        if bounds.min_ranges is not None and bounds.min_ranges > len(pieces) and total > 0 and sizes[where] > 0:
            # Rounded up: together they must be at least as many as were asked for.
            share = -(-bounds.min_ranges * sizes[where] // total)
            max_bytes = min(max_bytes, sizes[where] / share)
        found[where] = cut(parts, max_bytes, max_records)
    return found


def cut(pieces: Iterable[Piece], max_bytes: float, max_records: float) -> list[OffsetRange]:
    """A range ends where the next offset would be one too many, as far as the pieces tell."""
    ranges: list[OffsetRange] = []
    start = end = None
    used_bytes = used_records = 0.0
    for piece in pieces:
        if start is None:
            start = piece.start
        at, end = piece.start, piece.end
        bytes_each = piece.size_bytes / (piece.end - piece.start)
        records_each = piece.record_count / (piece.end - piece.start)
        while at < piece.end:
            room = min(
                _offsets_within(max_bytes - used_bytes, bytes_each),
                _offsets_within(max_records - used_records, records_each),
            )
            if at + room >= piece.end:
                used_bytes += (piece.end - at) * bytes_each
                used_records += (piece.end - at) * records_each
                break
            before, at = at, max(at + int(room), start + 1)
            ranges.append(OffsetRange(start, at))
            start = at
            # What whole offsets left unused goes to the next range, so that many ranges do not make one more.
            used_bytes += (at - before) * bytes_each - max_bytes
            used_bytes = used_bytes if -bytes_each <= used_bytes <= 0 else 0.0
            used_records = 0.0
    if start is not None and end is not None and start < end:
        ranges.append(OffsetRange(start, end))
    return ranges


def _offsets_within(budget: float, each: float) -> float:
    # A little more than exact: a sum of fractions must not cost a whole offset.
    return _UNBOUNDED if each <= 0 or budget == _UNBOUNDED else max(budget, 0.0) / each + 1e-6
