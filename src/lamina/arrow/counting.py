"""How far a number of records, or of bytes, reaches from an offset on: exact, from the headers of the batches.

Offset differences would lie on a compacted topic. Owns where a limit falls: between batches for bytes; for records
inside one, where every offset of it holds at most one. The bytes are fetched and looked at, not kept. Must not know
who asks, nor why.
"""

from collections.abc import Iterable
from typing import NamedTuple

from lamina.arrow.prefetching import RangeToFetch, fetch_range
from lamina.arrow.properties import ClientProperties
from lamina.peer.cluster import ClusterClient
from lamina.records.batch import BatchHeader, walk

_UNBOUNDED = 2**63 - 1


class Allowance(NamedTuple):
    records: int = _UNBOUNDED
    size_bytes: int = _UNBOUNDED

    @property
    def is_spent(self) -> bool:
        return self.records <= 0 or self.size_bytes <= 0


class Reached(NamedTuple):
    offset: int
    left: Allowance
    is_full: bool
    """Whether the next batch did not fit, so that there may be more."""


def advance(headers: Iterable[BatchHeader], start: int, end: int, allowance: Allowance, *, must_move: bool) -> Reached:
    """As far as the allowance goes over these batches; with ``must_move`` the first one is taken whatever its bytes."""
    at, (records, size_bytes) = start, allowance
    for header in headers:
        until = min(header.next_offset, end)
        if until <= at:
            continue
        if header.size_bytes > size_bytes and not must_move:
            return Reached(at, Allowance(records, size_bytes), True)
        held = 0 if header.is_control else min(header.record_count, until - max(at, header.base_offset))
        if held > records:
            # Any offset may hold a record: as many offsets as there may be records.
            return Reached(max(at, header.base_offset) + records, Allowance(0, size_bytes), True)
        records, size_bytes, at, must_move = records - held, size_bytes - header.size_bytes, until, False
        if at >= end:
            break
    return Reached(at, Allowance(records, size_bytes), False)


async def reach(
    cluster: ClusterClient,
    properties: ClientProperties,
    asked: RangeToFetch,
    allowance: Allowance,
    *,
    must_move: bool,
) -> Reached:
    """The same over a range of a partition, fetched as far as is needed."""
    at, left = asked.start, allowance
    async for chunk in fetch_range(cluster, properties, asked):
        headers = (header for _, header in walk(chunk.records))
        reached = advance(headers, max(at, chunk.start), asked.end, left, must_move=must_move and at == asked.start)
        at, left = reached.offset, reached.left
        if reached.is_full or left.is_spent:
            return Reached(at, left, at < asked.end)
    return Reached(asked.end, left, False)
