"""How far a stream goes next: from the offsets that it has reached to those of its next micro-batch.

Owns what a stream remembers while it runs: the topics' ids, who was first when a limit was shared, when the last batch
began, and, for Trigger.AvailableNow, where the end is. What it has reached, and of which topics by their ids, is the
checkpoint's to remember, and an argument; where that tells no ids, those that were seen since the start have to do.
Must not know Spark.
"""

from collections.abc import Mapping
from uuid import UUID

from lamina.arrow.cluster import Topic
from lamina.arrow.counting import Allowance
from lamina.arrow.cutting import OffsetRange
from lamina.arrow.errors import ReadError
from lamina.arrow.losses import Loss
from lamina.clocks import SYSTEM_CLOCKS, Clocks
from lamina.topic_partition import TopicPartition, name_of
from pyspark_lamina.lookup import Lookup
from pyspark_lamina.offsets import NO_IDS, Offsets, TopicIds
from pyspark_lamina.options import SourceOptions
from pyspark_lamina.planning import (
    count_between,
    initial_offsets,
    limit_offsets,
    losses_since,
    on_loss,
    partitions_from_their_start,
    ranges_between,
)

_LEAST_INTERVAL_MS = 50
"""Between two questions to the cluster while nothing comes; Spark's engine asks every 10 ms."""


class StreamProgress:
    def __init__(self, lookup: Lookup, options: SourceOptions, clocks: Clocks = SYSTEM_CLOCKS) -> None:
        self._lookup = lookup
        self._options = options
        self._clocks = clocks
        self.topic_ids: dict[str, UUID | None] = {}
        """As they were seen last."""
        self._begun_anew: dict[TopicPartition, int] = {}
        """How far partitions had been read in an earlier life, where that loss is tolerated."""
        self._told: set[Loss] = set()
        """Which losses have been told since the last batch ended: the engine asks again and again."""
        self._pinned: dict[TopicPartition, int] | None = None
        self._reached: Offsets | None = None
        self._turn = 0
        self._idle_since_ms: int | None = None
        self._last_batch_ms: int | None = None
        self.latest: Offsets = {}
        """As far as the partitions reach, as it was seen last."""

    def initial(self) -> dict[TopicPartition, int]:
        topics = self._lookup.topics()
        if missing := self._options.selection.missing(topics):
            raise ReadError(f"there is no {missing[0]}")
        partitions = self._options.selection.select(topics.values())
        self._take_ids(topics)
        positions = self._options.start.positions(partitions)
        log_starts = self._lookup.starts(partitions)
        offsets = self._lookup.offsets(positions)
        log_ends = self._lookup.high_watermarks(partitions)
        return initial_offsets(offsets, log_starts, log_ends, self._tell)

    def pin(self) -> None:
        """From now on there is nothing beyond what is there now."""
        self._pinned = self._lookup.ends(self._options.selection.select(self._lookup.topics().values()))

    def next(self, reached: Offsets, reached_ids: TopicIds = NO_IDS, *, is_limited: bool) -> dict[TopicPartition, int]:
        """What was reached, where there is nothing to read yet."""
        self._take_note(reached)
        self._rest()
        self.latest = self._find_latest(reached, reached_ids)
        starts = self._starts(reached, self.latest)
        end = self._limit(reached, starts) if is_limited else dict(self.latest)
        now_ms = self._clocks.monotonic_ms()
        if end == reached:
            self._idle_since_ms = now_ms
        else:
            self._idle_since_ms, self._last_batch_ms = None, now_ms
        return end

    def ranges(
        self, reached: Offsets, end: Offsets, reached_ids: TopicIds = NO_IDS, end_ids: TopicIds = NO_IDS
    ) -> dict[TopicPartition, OffsetRange]:
        """Of a batch that begins now, or is done again after a failure."""
        topics = self._lookup.topics()
        there = {where: offset for where, offset in end.items() if _is_in(where, topics)}
        made_again = _made_again(topics, end_ids)
        for loss in losses_since({**dict.fromkeys(end, 0), **reached}, there, made_again):
            self._tell(loss)
        # What a topic holds that was made after the batch was planned is for the next one.
        there = {where: offset for where, offset in there.items() if where[0] not in made_again}
        planned_anew = {name for name, one in end_ids.items() if reached_ids.get(name) not in (None, one)}
        self._begun_anew.update((where, offset) for where, offset in reached.items() if where[0] in planned_anew)
        return ranges_between(self._starts(reached, there), there)

    def _find_latest(self, reached: Offsets, reached_ids: TopicIds) -> dict[TopicPartition, int]:
        topics = self._lookup.topics()
        latest = self._pinned
        if latest is None:
            latest = self._lookup.ends(self._options.selection.select(topics.values()))
        made_again = _made_again(topics, {**self.topic_ids, **reached_ids})
        for loss in losses_since(reached, latest, made_again):
            self._tell(loss)
        if self._options.fails_on_data_loss and (missing := self._options.selection.missing(topics)):
            raise ReadError(f"there is no {missing[0]}")
        self._begun_anew.update((where, offset) for where, offset in reached.items() if where[0] in made_again)
        self._take_ids(topics)
        return latest

    def _take_ids(self, topics: Mapping[str, Topic]) -> None:
        self.topic_ids |= {topic.name: topic.topic_id for topic in topics.values()}

    def _starts(self, reached: Offsets, end: Offsets) -> dict[TopicPartition, int]:
        from_start = partitions_from_their_start(reached, end, self._begun_anew)
        found = self._lookup.starts(from_start) if from_start else {}
        for where, offset in found.items():
            if offset > 0:
                reason = f"{name_of(where)} is new to the query and begins at offset {offset}, not 0"
                self._tell(Loss(name_of(where), reason, 0, offset))
        return {**{where: reached[where] for where in end if where in reached}, **found}

    def _limit(self, reached: Offsets, starts: Offsets) -> dict[TopicPartition, int]:
        limits = self._options.trigger
        if self._waits_for_more(starts, limits.min_offsets, limits.max_delay_ms):
            return dict(reached)
        end = dict(self.latest)
        if limits.max_offsets is not None:
            end = limit_offsets(starts, end, limits.max_offsets)
        if limits.max_records is not None or limits.max_bytes is not None:
            most = Allowance()
            allowance = Allowance(limits.max_records or most.records, limits.max_bytes or most.size_bytes)
            end = self._lookup.limit_content(starts, end, allowance, self._turn)
            self._turn += 1
        return end

    def _waits_for_more(self, starts: Offsets, min_offsets: int | None, max_delay_ms: int) -> bool:
        if min_offsets is None or self._pinned is not None or self._last_batch_ms is None:
            return False
        has_waited_ms = self._clocks.monotonic_ms() - self._last_batch_ms
        return has_waited_ms < max_delay_ms and count_between(starts, self.latest) < min_offsets

    def _take_note(self, reached: Offsets) -> None:
        """A batch has ended, or the query has just begun."""
        if reached == self._reached:
            return
        self._reached = dict(reached)
        self._begun_anew.clear()
        self._told.clear()
        if self._options.commit_group is not None and reached:
            self._lookup.commit(self._options.commit_group, reached)

    def _tell(self, loss: Loss) -> None:
        """Raises `DataLoss` where it is not tolerated."""
        if loss not in self._told:
            on_loss(fails=self._options.fails_on_data_loss)(loss)
            self._told.add(loss)

    def _rest(self) -> None:
        if self._idle_since_ms is not None:
            rested_ms = self._clocks.monotonic_ms() - self._idle_since_ms
            if rested_ms < _LEAST_INTERVAL_MS:
                self._lookup.rest(_LEAST_INTERVAL_MS - rested_ms)


def _made_again(topics: Mapping[str, Topic], known: TopicIds) -> list[str]:
    return [topic.name for topic in topics.values() if known.get(topic.name) not in (None, topic.topic_id)]


def _is_in(where: TopicPartition, topics: dict[str, Topic]) -> bool:
    return where[0] in topics and where[1] in topics[where[0]].leaders
