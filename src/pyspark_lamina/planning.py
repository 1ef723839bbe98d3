"""From what was asked for and what there is to ranges of offsets, and what is lost between the two.

Owns the decisions of a plan: which offsets of which partitions, and whether records are missing. Loss is `DataLoss`,
or, where it is tolerated, less to read. Pure. Must not know how anything is asked of a cluster.
"""

from collections.abc import Iterable
from math import ceil

from lamina.arrow.cutting import OffsetRange
from lamina.arrow.errors import DataLoss
from lamina.topic_partition import TopicPartition
from pyspark_lamina.offsets import Offsets, name_of, names_of

_ADVICE = (
    "records may have been deleted by retention, or the topic was deleted; failOnDataLoss=false reads what is left"
)


def lost(reason: str) -> DataLoss:
    return DataLoss(f"data loss: {reason}; {_ADVICE}")


def ranges_within(
    starts: Offsets, ends: Offsets, log_starts: Offsets, log_ends: Offsets, *, fails_on_data_loss: bool
) -> dict[TopicPartition, OffsetRange]:
    """Those that are not empty, of a query that ends."""
    found = {}
    for where, asked_start in starts.items():
        start, end = asked_start, ends[where]
        if end > log_ends[where]:
            if fails_on_data_loss:
                raise lost(f"{name_of(where)} ends at offset {log_ends[where]}, and {end} was asked for")
            end = log_ends[where]
        if start < log_starts[where] and start < end:
            if fails_on_data_loss:
                raise lost(f"{name_of(where)} begins at offset {log_starts[where]}, and {start} was asked for")
            start = log_starts[where]
        if start < end:
            found[where] = OffsetRange(start, end)
    return found


def initial_offsets(
    asked: Offsets, log_starts: Offsets, log_ends: Offsets, *, fails_on_data_loss: bool
) -> dict[TopicPartition, int]:
    """Where a new stream begins."""
    found = {}
    for where, offset in asked.items():
        within = min(max(offset, log_starts[where]), log_ends[where])
        if within != offset and fails_on_data_loss:
            limits = f"holds offsets from {log_starts[where]} to {log_ends[where]}"
            raise lost(f"{name_of(where)} {limits}, and {offset} was asked for")
        found[where] = within
    return found


def check_loss(reached: Offsets, latest: Offsets, made_again: Iterable[str]) -> None:
    """Raises `DataLoss` where a stream cannot go on as if nothing had happened."""
    if gone := reached.keys() - latest.keys():
        raise lost(f"{names_of(gone)} cannot be found any more")
    for topic in made_again:
        raise lost(f"topic {topic} was deleted and made again (its topic id is another one)")
    for where, offset in reached.items():
        if latest[where] < offset:
            raise lost(f"{name_of(where)} ends at offset {latest[where]}, and the query has come to {offset}")


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
