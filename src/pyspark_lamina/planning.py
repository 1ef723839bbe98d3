"""From what was asked for and what there is to ranges of offsets, and what is lost between the two.

Owns the decisions of a plan: which offsets of which partitions, and whether records are missing. Loss is told to the
caller's `OnLoss`; where that lets it pass, there is less to read. Pure. Must not know how anything is asked of a
cluster.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from math import ceil

from lamina.arrow.cluster import Position
from lamina.arrow.cutting import OffsetRange
from lamina.arrow.losses import Loss, OnLoss, fail, warn
from lamina.peer.listing import LATEST
from lamina.topic_partition import TopicPartition, name_of
from pyspark_lamina.offsets import Offsets

_ADVICE = (
    "; records may have been deleted by retention, or the topic was deleted; failOnDataLoss=false reads what is left"
)


def on_loss(*, fails: bool) -> OnLoss:
    return partial(fail, advice=_ADVICE) if fails else warn


def ranges_within(
    starts: Offsets, ends: Offsets, log_starts: Offsets, log_ends: Offsets, on_loss: OnLoss
) -> dict[TopicPartition, OffsetRange]:
    """Those that are not empty, of a query that ends."""
    found = {}
    for where, asked_start in starts.items():
        name, start, end = name_of(where), asked_start, ends[where]
        if end > log_ends[where]:
            reason = f"{name} ends at offset {log_ends[where]}, and {end} was asked for"
            on_loss(Loss(name, reason, max(start, log_ends[where]), end))
            end = log_ends[where]
        if start < log_starts[where] and start < end:
            reason = f"{name} begins at offset {log_starts[where]}, and {start} was asked for"
            on_loss(Loss(name, reason, start, min(log_starts[where], end)))
            start = log_starts[where]
        if start < end:
            found[where] = OffsetRange(start, end)
    return found


def partitions_going_on(ends: Mapping[TopicPartition, Position]) -> set[TopicPartition]:
    """Those of a table for which no end was named.

    The end of the plan would not do: a key that was changed beyond it may have been compacted away below it when the
    task comes by, or the DataFrame is used again, and no broker tells.
    """
    return {where for where, position in ends.items() if position == LATEST}


def initial_offsets(
    asked: Offsets, log_starts: Offsets, log_ends: Offsets, on_loss: OnLoss
) -> dict[TopicPartition, int]:
    """Where a new stream begins."""
    found = {}
    for where, offset in asked.items():
        within = min(max(offset, log_starts[where]), log_ends[where])
        if within != offset:
            limits = f"holds offsets from {log_starts[where]} to {log_ends[where]}"
            reason = f"{name_of(where)} {limits}, and {offset} was asked for"
            on_loss(Loss(name_of(where), reason, offset, max(offset, within)))
        found[where] = within
    return found


def losses_since(reached: Offsets, latest: Offsets, made_again: Collection[str]) -> Iterator[Loss]:
    """Why a stream cannot go on as if nothing had happened."""
    for where, offset in reached.items():
        name = name_of(where)
        if where not in latest:
            yield Loss(name, f"{name} cannot be found any more", offset)
        elif where[0] in made_again:
            yield Loss(name, f"topic {where[0]} was deleted and made again (its topic id is another one)", offset)
        elif latest[where] < offset:
            yield Loss(name, f"{name} ends at offset {latest[where]}, and the query has come to {offset}", offset)


def partitions_from_their_start(reached: Offsets, latest: Offsets, begun_anew: Offsets) -> set[TopicPartition]:
    """New ones; and, where loss is tolerated, those of which what was reached is of an earlier life.

    ``begun_anew`` says how far these had been read in that life, for the next one may be longer by now.
    """
    return {
        where
        for where, end in latest.items()
        if where not in reached or end < reached[where] or begun_anew.get(where) == reached[where]
    }


def ranges_between(starts: Offsets, ends: Offsets) -> dict[TopicPartition, OffsetRange]:
    return {where: OffsetRange(starts[where], end) for where, end in ends.items() if starts[where] < end}


def count_between(starts: Offsets, ends: Offsets) -> int:
    return sum(max(end - starts[where], 0) for where, end in ends.items())


def limit_offsets(starts: Offsets, ends: Offsets, max_offsets: int) -> dict[TopicPartition, int]:
    """Each partition's share by how many offsets it has to give, and never none, as Spark's own source has it."""
    total = count_between(starts, ends)
    if total <= max_offsets:
        return dict(ends)
    limited = {}
    for where, end in ends.items():
        exact = max_offsets * (end - starts[where]) / total
        share = ceil(exact) if exact < 1 else int(exact)
        limited[where] = min(end, starts[where] + share) if end > starts[where] else end
    return limited
