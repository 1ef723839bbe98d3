"""A partition as the rules of compaction see it.

Owns the step from a live log to ``compaction.eligibility``. What no rule asks for is not read: timestamps lie in
indexes and files. Must not decide anything.
"""

from dataclasses import dataclass

from lamina.broker.partitions.partition import Partition
from lamina.compaction.eligibility import Cleanable, FirstDirty, Lags, LogSight, SegmentSight, find_first_dirty, look
from lamina.log.partition_log import PartitionLog
from lamina.log.segment import Segment
from lamina.records.batch import HEADER_BYTES, NO_TIMESTAMP, read_header
from lamina.settings.log_config import LONG_MAX, LogConfig


@dataclass(frozen=True, slots=True)
class Sight:
    """What could be cleaned of a partition, and whether it is to be."""

    partition: Partition
    first_dirty: FirstDirty
    cleanable: Cleanable

    @property
    def is_eligible(self) -> bool:
        return self.cleanable.is_eligible(self.partition.log.config.min_cleanable_dirty_ratio)

    @property
    def key(self) -> tuple[str, int]:
        return self.partition.topic, self.partition.index


def see(partition: Partition, checkpoint: int | None, now_ms: int) -> Sight:
    """Look at a compacted partition. Raises whatever its files raise: it is uncleanable then (fact 24)."""
    return Sight(partition, *see_log(partition.log, partition.last_stable_offset, checkpoint, now_ms))


def see_log(
    log: PartitionLog, last_stable_offset: int, checkpoint: int | None, now_ms: int
) -> tuple[FirstDirty, Cleanable]:
    config = log.config
    sight = LogSight(
        checkpoint=checkpoint,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        last_stable_offset=last_stable_offset,
        segments=[_segment(segment, config, is_active=segment is log.segments.active) for segment in log.segments],
    )
    lags = Lags(config.min_compaction_lag_ms, config.max_compaction_lag_ms)
    return find_first_dirty(sight), look(sight, lags, now_ms)


def _segment(segment: Segment, config: LogConfig, *, is_active: bool) -> SegmentSight:
    asks_age = config.min_compaction_lag_ms > 0 and not is_active
    asks_first = config.max_compaction_lag_ms < LONG_MAX and not is_active
    return SegmentSight(
        base_offset=segment.base_offset,
        size_bytes=segment.size_bytes,
        largest_timestamp_ms=segment.largest_timestamp().timestamp if asks_age else NO_TIMESTAMP,
        modified_ms=segment.modified_ms,
        first_batch_timestamp_ms=_first_timestamp(segment) if asks_first else NO_TIMESTAMP,
    )


def _first_timestamp(segment: Segment) -> int:
    if segment.first_timestamp < 0 and segment.size_bytes >= HEADER_BYTES:
        with segment.lease(0, HEADER_BYTES) as lease:
            segment.first_timestamp = read_header(lease.read()).max_timestamp
    return segment.first_timestamp
