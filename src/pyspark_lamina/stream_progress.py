"""How far a stream goes next: from the offsets that it has reached to those of its next micro-batch.

Owns what a stream remembers while it runs: where it began, the topics' ids, who was first when a limit was shared, when
the last batch began, and, for Trigger.AvailableNow, where the end is. What it has reached, and of which topics by their
ids, is the checkpoint's to remember, and an argument; where that tells no ids, those that were seen since the start
have to do. A topic that cannot be found keeps its position for as long as its id is known: if it is there again, it
goes on, and if another one is, that is told by its id. Must not know Spark.
"""

from collections.abc import Mapping
from uuid import UUID

from lamina.arrow.cluster import KnownIds, Topic
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
        self._initial: dict[TopicPartition, int] | None = None
        self._pinned: dict[TopicPartition, int] | None = None
        self._pinned_ids: TopicIds = NO_IDS
        self._reached: tuple[Offsets, TopicIds] | None = None
        self._absent: set[str] = set()
        """Partitions that cannot be found, and whose position is kept."""
        self._turn = 0
        self._idle_since_ms: int | None = None
        self._last_batch_ms: int | None = None
        self.latest: Offsets = {}
        """As far as the partitions reach, as it was seen last."""
        self.starts: Offsets = {}
        """Where the batch begins that was planned last."""
        self.is_idle = True
        """Whether `next` found nothing to read yet."""

    def initial(self) -> dict[TopicPartition, int]:
        """Found once: the engine asks again and again until a first batch has ended, and ``latest`` moves on."""
        if self._initial is None:
            self._initial = self._find_initial()
            if self._pinned is not None:
                self._pinned |= {
                    where: max(offset, self._pinned.get(where, offset)) for where, offset in self._initial.items()
                }
        return self._initial

    def _find_initial(self) -> dict[TopicPartition, int]:
        topics = self._lookup.topics()
        if missing := self._options.selection.missing(topics):
            raise ReadError(f"there is no {missing[0]}")
        partitions = self._options.selection.select(topics.values())
        self.topic_ids |= _ids_of(topics)
        positions = self._options.start.positions(partitions)
        log_starts = self._lookup.starts(partitions)
        offsets = self._lookup.offsets(positions)
        log_ends = self._lookup.high_watermarks(partitions)
        return initial_offsets(offsets, log_starts, log_ends, self._tell)

    @property
    def begun_at(self) -> Offsets | None:
        """``None`` where nobody has asked, because a checkpoint goes before it."""
        return self._initial

    def pin(self) -> None:
        """From now on there is nothing beyond what is there now, or beyond where a new stream begins."""
        topics = self._lookup.topics()
        self._pinned = self._lookup.ends(self._options.selection.select(topics.values()))
        self._pinned_ids = _ids_of(topics)

    def next(self, reached: Offsets, reached_ids: TopicIds = NO_IDS, *, is_limited: bool) -> dict[TopicPartition, int]:
        """What was reached, where there is nothing to read yet."""
        self._rest()
        known_ids = {**self.topic_ids, **reached_ids}
        topics = self._lookup.topics(self._known(reached, known_ids))
        self._take_note(reached, reached_ids, topics)
        self.latest = self._find_latest(topics, reached, known_ids)
        starts = self._starts(reached, self.latest)
        kept = {where: offset for where, offset in reached.items() if name_of(where) in self._absent}
        self.starts = {**starts, **kept}
        limits = self._options.trigger
        if is_limited and self._waits_for_more(starts, limits.min_offsets, limits.max_delay_ms):
            end, self.is_idle = dict(reached), True
        else:
            end = {**(self._limit(starts) if is_limited else self.latest), **kept}
            self.is_idle = end == reached and not self._begun_anew
        now_ms = self._clocks.monotonic_ms()
        if self.is_idle:
            self._idle_since_ms = now_ms
        else:
            self._idle_since_ms, self._last_batch_ms = None, now_ms
        return end

    def ranges(
        self, reached: Offsets, end: Offsets, reached_ids: TopicIds = NO_IDS, end_ids: TopicIds = NO_IDS
    ) -> dict[TopicPartition, OffsetRange]:
        """Of a batch that begins now, or is done again after a failure."""
        topics = self._lookup.topics(self._known(end, end_ids))
        there = {where: offset for where, offset in end.items() if _is_in(where, topics)}
        made_again = _made_again(topics, end_ids)
        for loss in losses_since({**dict.fromkeys(end, 0), **reached}, there, made_again):
            self._tell(loss)
        # What a topic holds that was made after the batch was planned is for the next one.
        there = {where: offset for where, offset in there.items() if where[0] not in made_again}
        planned_anew = {name for name, one in end_ids.items() if reached_ids.get(name) not in (None, one)}
        self._begun_anew.update((where, offset) for where, offset in reached.items() if where[0] in planned_anew)
        return ranges_between(self._starts(reached, there), there)

    def _find_latest(
        self, topics: Mapping[str, Topic], reached: Offsets, known_ids: TopicIds
    ) -> dict[TopicPartition, int]:
        latest = self._ends(topics, reached)
        made_again = _made_again(topics, known_ids)
        for loss in losses_since(reached, latest, made_again):
            self._tell(loss)
        self._absent = {
            name_of(where)
            for where in self._known(reached, known_ids).keys() - latest.keys()
            if known_ids.get(where[0]) is not None and where[0] not in made_again
        }
        if self._options.fails_on_data_loss and (missing := self._options.selection.missing(topics)):
            raise ReadError(f"there is no {missing[0]}")
        self._begun_anew.update((where, offset) for where, offset in reached.items() if where[0] in made_again)
        self.topic_ids = {**known_ids, **_ids_of(topics)}
        return latest

    def _ends(self, topics: Mapping[str, Topic], reached: Offsets) -> dict[TopicPartition, int]:
        partitions = self._options.selection.select(topics.values())
        if self._pinned is None:
            return self._lookup.ends(partitions)
        # Topics made again since, and those that a broker did not know which lagged behind.
        made_again = _made_again(topics, self._pinned_ids)
        late = [one for one in partitions if one[0] in made_again or (one in reached and one not in self._pinned)]
        if late:
            self._pinned |= self._lookup.ends(late)
            self._pinned_ids = {**self._pinned_ids, **_ids_of(topics)}
        return {where: offset for where, offset in self._pinned.items() if _is_in(where, topics)}

    def _known(self, offsets: Offsets, ids: TopicIds) -> KnownIds:
        return {where: ids.get(where[0]) for where in offsets if self._options.selection.covers(where)}

    def _starts(self, reached: Offsets, end: Offsets) -> dict[TopicPartition, int]:
        from_start = partitions_from_their_start(reached, end, self._begun_anew)
        found = self._lookup.starts(from_start) if from_start else {}
        for where, offset in found.items():
            if offset > 0:
                reason = f"{name_of(where)} is new to the query and begins at offset {offset}, not 0"
                self._tell(Loss(name_of(where), reason, 0, offset))
        return {**{where: reached[where] for where in end if where in reached}, **found}

    def _limit(self, starts: Offsets) -> dict[TopicPartition, int]:
        limits = self._options.trigger
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

    def _take_note(self, reached: Offsets, reached_ids: TopicIds, topics: Mapping[str, Topic]) -> None:
        """A batch has ended, or the query has just begun."""
        if (reached, reached_ids) == self._reached:
            return
        self._reached = dict(reached), dict(reached_ids)
        self._begun_anew.clear()
        self._told = {loss for loss in self._told if loss.partition in self._absent}
        there = {where: offset for where, offset in reached.items() if _is_in(where, topics)}
        if self._options.commit_group is not None and there:
            self._lookup.commit(self._options.commit_group, there)

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
    # A broker that is too old tells no id, and so nothing about it.
    return [one.name for one in topics.values() if one.topic_id and known.get(one.name) not in (None, one.topic_id)]


def _ids_of(topics: Mapping[str, Topic]) -> TopicIds:
    return {topic.name: topic.topic_id for topic in topics.values()}


def _is_in(where: TopicPartition, topics: Mapping[str, Topic]) -> bool:
    return where[0] in topics and where[1] in topics[where[0]].leaders
