"""How far a micro-batch goes within a number of records, or of bytes: exact also on compacted topics.

Owns how an allowance is shared: evenly, and what one partition does not need goes to the others. Where there is not
enough for all, another one is first in each batch. Must not know how the batches of a partition are looked at.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from lamina.arrow.counting import Allowance, Reached
from lamina.arrow.cutting import OffsetRange
from lamina.topic_partition import TopicPartition
from pyspark_lamina.offsets import Offsets
from pyspark_lamina.planning import count_between, ranges_between

_UNBOUNDED = Allowance().records

Reach = Callable[[TopicPartition, OffsetRange, Allowance, bool], Awaitable[Reached]]
"""How far an allowance reaches in a range; with the last argument, over one batch at least."""


async def limit_content(
    starts: Offsets, ends: Offsets, allowance: Allowance, turn: int, reach: Reach
) -> dict[TopicPartition, int]:
    """The ends within the allowance. At least one batch, or one record, is taken where there is any."""
    if allowance.size_bytes == _UNBOUNDED and count_between(starts, ends) <= allowance.records:
        return dict(ends)  # There are no more records than offsets: nothing has to be looked at.
    at = {where: starts[where] for where in ends}
    open_ranges = _turned(sorted(ranges_between(starts, ends)), turn)
    left, has_moved = allowance, False
    while open_ranges and not left.is_spent:
        shares = _shares(left, len(open_ranges))
        asked = open_ranges[: len(shares)]
        must_move = not has_moved and len(asked) == 1
        found = await asyncio.gather(
            *(
                reach(where, OffsetRange(at[where], ends[where]), share, must_move)
                for where, share in zip(asked, shares, strict=True)
            )
        )
        left = _left(left, shares, found)
        reached = dict(zip(asked, found, strict=True))
        if any(one.offset > at[where] for where, one in reached.items()):
            has_moved = True
            open_ranges = [where for where in open_ranges if where not in reached or reached[where].is_full]
        elif len(asked) > 1:
            open_ranges = open_ranges[:1]  # No share is large enough for a batch: the first one has them all.
        else:
            break
        at.update((where, one.offset) for where, one in reached.items())
    return {where: at[where] if starts[where] < end else end for where, end in ends.items()}


def _turned(partitions: Sequence[TopicPartition], turn: int) -> list[TopicPartition]:
    first = turn % max(len(partitions), 1)
    return [*partitions[first:], *partitions[:first]]


def _shares(left: Allowance, count: int) -> list[Allowance]:
    """Even ones; fewer than were asked for where there is not one record, or byte, for each."""
    count = min(count, left.records, left.size_bytes)
    return [Allowance(*(_UNBOUNDED if most == _UNBOUNDED else most // count for most in left))] * count


def _left(left: Allowance, shares: Sequence[Allowance], found: Sequence[Reached]) -> Allowance:
    records = sum(share.records - one.left.records for share, one in zip(shares, found, strict=True))
    size_bytes = sum(share.size_bytes - one.left.size_bytes for share, one in zip(shares, found, strict=True))
    return Allowance(
        left.records if left.records == _UNBOUNDED else left.records - records,
        left.size_bytes if left.size_bytes == _UNBOUNDED else left.size_bytes - size_bytes,
    )
