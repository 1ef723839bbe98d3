"""Which compacted logs can be cleaned now, and which of them are cleaned next.

Owns the step from a live log to ``compaction.eligibility``, the figures of the last search (facts 23 and 100), and the
order: logs that somebody asked for, then the filthiest (fact 23), then those in which only delete horizons passed.
What no rule asks for is not read, because timestamps lie in indexes and files. Logs are visited for a moment at a time,
so that the loop goes on. Must not know passes.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.cleaning.gather import PassRange
from lamina.clocks import Clocks
from lamina.compaction.eligibility import (
    Cleanable,
    FirstDirty,
    Lags,
    LogSummary,
    SegmentSummary,
    find_cleanable,
    find_first_dirty,
)
from lamina.log.partition_log import PartitionLog
from lamina.log.segment import Segment
from lamina.records.batch import NO_TIMESTAMP
from lamina.settings.log_config import LONG_MAX, LogConfig
from lamina.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

_TURN_MS = 1


@dataclass(frozen=True, slots=True)
class CleaningCandidate:
    """A compacted partition, and what could be cleaned of it."""

    partition: Partition
    first_dirty: FirstDirty
    cleanable: Cleanable

    @property
    def is_eligible(self) -> bool:
        return self.cleanable.is_eligible(self.partition.log.config.min_cleanable_dirty_ratio)

    @property
    def key(self) -> TopicPartition:
        return self.partition.topic, self.partition.index


# One log


def inspect(partition: Partition, checkpoint: int | None, now_ms: int) -> CleaningCandidate:
    """Raises whatever the files of the log raise: it is uncleanable then (fact 24)."""
    return CleaningCandidate(partition, *inspect_log(partition.log, partition.last_stable_offset, checkpoint, now_ms))


def inspect_log(
    log: PartitionLog, last_stable_offset: int, checkpoint: int | None, now_ms: int
) -> tuple[FirstDirty, Cleanable]:
    config = log.config
    summary = LogSummary(
        checkpoint=checkpoint,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        last_stable_offset=last_stable_offset,
        segments=[_summary(segment, config, is_active=segment is log.segments.active) for segment in log.segments],
    )
    lags = Lags(config.min_compaction_lag_ms, config.max_compaction_lag_ms)
    return find_first_dirty(summary), find_cleanable(summary, lags, now_ms)


def _summary(segment: Segment, config: LogConfig, *, is_active: bool) -> SegmentSummary:
    asks_age = config.min_compaction_lag_ms > 0 and not is_active
    asks_first = config.max_compaction_lag_ms < LONG_MAX and not is_active
    return SegmentSummary(
        base_offset=segment.base_offset,
        size_bytes=segment.size_bytes,
        largest_timestamp_ms=segment.largest_timestamp().timestamp if asks_age else NO_TIMESTAMP,
        modified_ms=segment.modified_ms,
        first_batch_timestamp_ms=segment.first_timestamp() if asks_first else NO_TIMESTAMP,
    )


# All logs


class InspectionFailed(Exception):
    """The files of a log cannot be read."""

    def __init__(self, key: TopicPartition, error: Exception) -> None:
        super().__init__(f"its files cannot be read: {error}")
        self.key = key


class CandidateSearch:
    def __init__(self, clocks: Clocks, directories: LogDirectories, partitions: Partitions) -> None:
        self._clocks = clocks
        self._directories = directories
        self._partitions = partitions
        self.max_dirty_ratio = 0.0
        """Over all logs that hold anything, eligible or not."""
        self.max_overdue_ms = 0
        self._cleanable = self._overdue = 0
        self.searched_at_ms = clocks.now_ms()

    def compacted(self) -> list[Partition]:
        """The partitions that are to be compacted and are online."""
        return [one for one in self._partitions if one.log.config.compact and one.log.failure is None]

    def is_served(self, partition: Partition) -> bool:
        return self._partitions.find(partition.topic, partition.index) is partition

    def inspect(self, partition: Partition) -> CleaningCandidate:
        """What could be cleaned of a partition now. Raises for one whose files cannot be read."""
        key = (partition.topic, partition.index)
        checkpoint = self._directories.of[key].offset_checkpoints.cleaner_offsets.get(key)
        return inspect(partition, checkpoint, self._clocks.now_ms())

    async def find_candidates(self, may_be_cleaned: Callable[[TopicPartition], bool]) -> list[CleaningCandidate]:
        """Every log that may be cleaned now. Raises :class:`InspectionFailed` at one that cannot be read (fact 24)."""
        candidates: list[CleaningCandidate] = []
        began_ms = self._clocks.monotonic_ms()
        self.searched_at_ms = self._clocks.now_ms()
        for partition in self.compacted():
            key = (partition.topic, partition.index)
            if self.is_served(partition) and may_be_cleaned(key):
                try:
                    candidates.append(self.inspect(partition))
                except Exception as error:
                    raise InspectionFailed(key, error) from error
            if self._clocks.monotonic_ms() - began_ms >= _TURN_MS:
                await asyncio.sleep(0)
                began_ms = self._clocks.monotonic_ms()
        filled = [one.cleanable for one in candidates if one.cleanable.clean_bytes + one.cleanable.cleanable_bytes]
        self.max_dirty_ratio = max((one.dirty_ratio for one in filled), default=0.0)
        self.max_overdue_ms = max((one.overdue_ms for one in filled), default=0)
        self._cleanable = sum(one.cleanable_bytes > 0 for one in filled)
        self._overdue = sum(one.overdue_ms > 0 for one in filled)
        return candidates

    def log_overdue(self) -> None:
        """Fact 101: what is logged after a pass of logs that wait beyond ``max.compaction.lag.ms``."""
        if self._overdue:
            logger.info(
                "logs that could be cleaned: %d; of them overdue: %d, the longest by %d ms",
                self._cleanable,
                self._overdue,
                self.max_overdue_ms,
            )


# Which are next


class Choice(NamedTuple):
    candidate: CleaningCandidate
    pass_range: PassRange
    is_manual: bool = False
    """Somebody asked for it."""


def filthiest_logs(candidates: Sequence[CleaningCandidate], wanted: Set[TopicPartition]) -> list[Choice]:
    """The eligible logs, and those that are ``wanted`` if anything of them can be cleaned at all."""
    chosen = [one for one in candidates if one.cleanable.cleanable_bytes and (one.is_eligible or one.key in wanted)]
    chosen.sort(key=lambda one: (one.key not in wanted, -one.cleanable.dirty_ratio))
    return [
        Choice(
            one,
            PassRange(one.cleanable.first_dirty_offset, one.cleanable.first_uncleanable_offset),
            is_manual=one.key in wanted,
        )
        for one in chosen
    ]


def logs_with_passed_horizons(
    candidates: Sequence[CleaningCandidate], horizons: Mapping[TopicPartition, int | None], now_ms: int, limit: int
) -> list[Choice]:
    """Logs in whose clean section a delete horizon has passed, or may have: before the first pass it is not known.

    ``horizons`` are the earliest that are known; ``None`` where there is none.
    """
    chosen: list[Choice] = []
    for candidate in candidates:
        earliest_ms = horizons.get(candidate.key, -1)
        bases = [segment.base_offset for segment in candidate.partition.log.segments]
        end = max((base for base in bases if base <= candidate.cleanable.first_dirty_offset), default=0)
        if len(chosen) < limit and earliest_ms is not None and earliest_ms <= now_ms and end > bases[0]:
            chosen.append(Choice(candidate, PassRange(end, end, only_expired=True)))
    return chosen
