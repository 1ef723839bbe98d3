"""The segments of a log in offset order.

Owns the order; the last one is active. Must not know files.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice
from operator import attrgetter

from lamina.log.lease import Lease
from lamina.log.positions import end_of, lease_batches
from lamina.log.segment import Segment
from lamina.log.transaction_index import AbortedTransaction

_marker_offset = attrgetter("last_offset")


class SegmentList:
    __slots__ = ("_bases", "_items", "active")

    def __init__(self, segments: Iterable[Segment]) -> None:
        self._items = sorted(segments, key=lambda segment: segment.base_offset)
        self._bases = [segment.base_offset for segment in self._items]
        self.active = self._items[-1]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, number: int) -> Segment:
        return self._items[number]

    @property
    def first(self) -> Segment:
        return self._items[0]

    def number_of(self, offset: int) -> int:
        """The number of the segment that ``offset`` falls into; 0 below the first."""
        return max(bisect_right(self._bases, offset) - 1, 0)

    def between(self, start: int, end: int) -> list[Segment]:
        """The segments that hold any of ``[start, end)``, by their bases."""
        return self._items[self.number_of(start) : bisect_left(self._bases, end)]

    def lease(self, offset: int, max_bytes: int, end: int) -> Lease | None:
        """The batches of the first segment that has any in ``[offset, end)``; see ``positions.lease_batches``."""
        if offset < end:
            for number in range(self.number_of(offset), len(self._items)):
                segment = self._items[number]
                if segment.base_offset >= end:
                    break
                lease = lease_batches(segment, offset, max_bytes, end)
                if lease is not None:
                    return lease
        return None

    def aborted_between(self, start: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions that reach into ``[start, end)``: what a committed reader of it has to skip.

        An abort whose last stable offset is at or above ``end`` ends the search: all
        transactions that were open below have ended.
        """
        found = []
        for segment in self._items[self.number_of(start) :]:
            entries = segment.aborted.entries()
            for entry in islice(entries, bisect_left(entries, start, key=_marker_offset), None):
                if entry.first_offset < end:
                    found.append(entry)
                if entry.last_stable_offset >= end:
                    return found
        return found

    def aborted_in(self, lease: Lease, start: int, bound: int) -> list[AbortedTransaction]:
        """What a committed reader of this lease has to skip, if it begins at ``start`` and may not reach ``bound``."""
        if not any(segment.aborted.exists for segment in self._items[self.number_of(start) :]):
            return []
        lender = next((segment for segment in self.between(start, bound) if segment.lends(lease)), None)
        return self.aborted_between(start, bound if lender is None else min(end_of(lender, lease), bound))

    def add(self, segment: Segment) -> None:
        """Take in a segment; one with the same base is replaced."""
        number = bisect_left(self._bases, segment.base_offset)
        if number < len(self._bases) and self._bases[number] == segment.base_offset:
            self._items[number] = segment
        else:
            self._bases.insert(number, segment.base_offset)
            self._items.insert(number, segment)
        self.active = self._items[-1]

    def remove(self, segments: Iterable[Segment]) -> None:
        """Let go of these very segments; one that is not here (any more) is passed over."""
        # A copy: somebody may be going through the segments.
        items, bases = list(self._items), list(self._bases)
        for segment in segments:
            number = bisect_left(bases, segment.base_offset)
            if number < len(items) and items[number] is segment:
                del items[number], bases[number]
        self._items, self._bases = items, bases
        if items:
            self.active = items[-1]

    def replace(self, old: Iterable[Segment], new: Iterable[Segment]) -> None:
        """Have ``new`` segments in the place of ``old`` ones."""
        self.remove(old)
        for segment in new:
            self.add(segment)

    def __contains__(self, segment: Segment) -> bool:
        """Whether this very segment is here, found by its base."""
        number = bisect_left(self._bases, segment.base_offset)
        return number < len(self._items) and self._items[number] is segment

    def present(self, segments: Iterable[Segment]) -> list[Segment]:
        """Those of them that are (still) here."""
        return [segment for segment in segments if segment in self]

    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._items)
