"""How dense a partition is, from a few small fetches: bytes and records between two offsets.

Offsets say little about a compacted partition: a million of them may hold ten records. A `Survey` asks for what lies at
a few offsets, then where two neighbours differ most for the ground between them, until its samples are used up.
Pure: whoever has the connection asks. Must not know how anything is fetched.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

_FIRST_SAMPLES = 3


class Sample(NamedTuple):
    """What lies at an offset: the first whole batches from there on."""

    asked: int
    next_offset: int
    """The first offset after these batches."""
    size_bytes: int
    record_count: int


class Piece(NamedTuple):
    """A part of the partition that is taken to be evenly dense."""

    start: int
    end: int
    size_bytes: float
    record_count: float


class Survey:
    """Of the offsets [start, end): ``while (offset := survey.wanted()) is not None: survey.learn(…)``."""

    def __init__(self, start: int, end: int, max_samples: int) -> None:
        self._start, self._end = start, end
        self._left = max_samples
        self._samples: list[Sample] = []
        """By the offset asked for; none begins before the one before it ends."""
        self._first = [end - 1, *(start + (end - start) * n // _FIRST_SAMPLES for n in reversed(range(_FIRST_SAMPLES)))]
        """Asked for from the back; the last offset tells of the tail, where nothing is compacted yet."""

    def wanted(self) -> int | None:
        """The offset to ask for next; None when enough is known."""
        if self._left <= 0 or self._start >= self._end:
            return None
        while self._first:
            offset = self._first.pop()
            if not self._is_covered(offset):
                return offset
        gap = max(self._gaps(), default=None)
        return None if gap is None or gap[0] <= 0 else gap[1]

    def learn(self, sample: Sample) -> None:
        """A sample that is empty says that nothing lies from its offset to its end."""
        self._left -= 1
        next_offset = min(max(sample.next_offset, sample.asked + 1), self._end)
        after = bisect_right(self._samples, sample.asked, key=lambda known: known.asked)
        if after < len(self._samples):
            next_offset = min(next_offset, self._samples[after].asked)
        share = (next_offset - sample.asked) / max(sample.next_offset - sample.asked, 1)
        # What reaches past the end, or into a known sample, counts in part.
        share = min(share, 1.0)
        self._samples.insert(
            after,
            Sample(sample.asked, next_offset, round(sample.size_bytes * share), round(sample.record_count * share)),
        )

    def pieces(self) -> Iterator[Piece]:
        """All of [start, end), in order."""
        at = self._start
        for index, sample in enumerate(self._samples):
            yield Piece(at, sample.next_offset, sample.size_bytes, sample.record_count)
            at = sample.next_offset
            until = self._samples[index + 1].asked if index + 1 < len(self._samples) else self._end
            if at < until:
                left, right = sample, self._samples[min(index + 1, len(self._samples) - 1)]
                yield Piece(at, until, _between(left, right, 2) * (until - at), _between(left, right, 3) * (until - at))
                at = until
        if at < self._end:
            yield Piece(at, self._end, float(self._end - at), float(self._end - at))

    def _is_covered(self, offset: int) -> bool:
        before = bisect_right(self._samples, offset, key=lambda known: known.asked)
        return before > 0 and offset < self._samples[before - 1].next_offset

    def _gaps(self) -> Iterator[tuple[float, int]]:
        """How much is uncertain between two samples, and its middle."""
        for index, sample in enumerate(self._samples):
            is_last = index + 1 == len(self._samples)
            until = self._end if is_last else self._samples[index + 1].asked
            if until - sample.next_offset > 1:
                right = sample if is_last else self._samples[index + 1]
                difference = abs(_density(sample, 2) - _density(right, 2)) + abs(
                    _density(sample, 3) - _density(right, 3)
                )
                # Equal neighbours may still differ in between: a little is always uncertain after sparse ground.
                doubt = difference + 0.01 * (1.0 - min(_density(sample, 3), _density(right, 3), 1.0))
                yield doubt * (until - sample.next_offset), (sample.next_offset + until) // 2


def _density(sample: Sample, field: int) -> float:
    return float(sample[field]) / max(sample.next_offset - sample.asked, 1)


def _between(left: Sample, right: Sample, field: int) -> float:
    return (_density(left, field) + _density(right, field)) / 2
