"""Whether a log is to be cleaned, and which range of it (facts 10-22).

Owns the arithmetic of dirty bytes, ratio and lag. The caller gives a log as it is at one instant; time is an argument.
Must not know where the figures come from, nor what becomes of the result.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lamina.compaction.retain import OFFSET_AFTER_ALL


@dataclass(frozen=True, slots=True)
class SegmentSummary:
    """The figures of a segment."""

    base_offset: int
    size_bytes: int
    largest_timestamp_ms: int
    """Of its batches; negative where none has one (fact 16)."""
    modified_ms: int
    first_batch_timestamp_ms: int
    """The max timestamp of its first batch; not above zero where there is none."""

    @property
    def age_timestamp_ms(self) -> int:
        return self.largest_timestamp_ms if self.largest_timestamp_ms >= 0 else self.modified_ms


@dataclass(frozen=True, slots=True)
class LogSummary:
    """The figures of a log at one instant. Its last segment is the active one."""

    checkpoint: int | None
    """How far it was cleaned, as ``cleaner-offset-checkpoint`` says."""
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    segments: Sequence[SegmentSummary]


@dataclass(frozen=True, slots=True)
class Lags:
    """The settings of a topic that say how long a record stays as it came."""

    min_compaction_lag_ms: int
    max_compaction_lag_ms: int


@dataclass(frozen=True, slots=True)
class FirstDirty:
    offset: int
    is_reset: bool
    """The checkpoint was outside this log and has to be written again (facts 12, 13)."""
    is_below_start: bool = False
    """It lay below the log start: no surprise where retention moves that (fact 12)."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Cleanable:
    """What a pass over a log would find."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    overdue_ms: int
    """For how long its oldest dirty record should have been compacted; 0 when it is not overdue (fact 21)."""
    overdue_at_ms: int | None = None
    """After which instant it is overdue; ``None`` where it never is."""

    @property
    def dirty_ratio(self) -> float:
        """Of no bytes at all, 0 (fact 19)."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_eligible(self, min_cleanable_dirty_ratio: float) -> bool:
        """Fact 20: dirty enough, or overdue; never without cleanable bytes."""
        if not self.cleanable_bytes:
            return False
        return self.dirty_ratio > min_cleanable_dirty_ratio or self.overdue_ms > 0


def find_first_dirty(log: LogSummary) -> FirstDirty:
    """Facts 11-14."""
    if log.checkpoint is None:
        return FirstDirty(log.log_start_offset, is_reset=False)
    is_below_start = log.checkpoint < log.log_start_offset
    if is_below_start:
        reason = f"the checkpoint {log.checkpoint} lies below the log start offset {log.log_start_offset}"
    elif log.checkpoint > log.log_end_offset:
        reason = f"the checkpoint {log.checkpoint} lies above the log end offset {log.log_end_offset}"
    else:
        return FirstDirty(log.checkpoint, is_reset=False)
    return FirstDirty(log.log_start_offset, is_reset=True, is_below_start=is_below_start, reason=reason)


def find_cleanable(log: LogSummary, lags: Lags, now_ms: int) -> Cleanable:
    """What could be cleaned of a log now (facts 11-22)."""
    first_dirty = find_first_dirty(log).offset
    first_uncleanable = _first_uncleanable(log, first_dirty, lags.min_compaction_lag_ms, now_ms)
    overdue_at_ms = _overdue_at(log, first_dirty, lags.max_compaction_lag_ms)
    dirty = [s for s in _from_offset(log.segments, first_dirty) if s.base_offset < first_uncleanable]
    return Cleanable(
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=first_uncleanable,
        clean_bytes=sum(s.size_bytes for s in log.segments if s.base_offset < first_dirty),
        cleanable_bytes=sum(s.size_bytes for s in dirty),
        overdue_ms=0 if overdue_at_ms is None else max(now_ms - overdue_at_ms, 0),
        overdue_at_ms=overdue_at_ms,
    )


def _first_uncleanable(log: LogSummary, first_dirty: int, min_lag_ms: int, now_ms: int) -> int:
    """Facts 15 and 17."""
    active = log.segments[-1].base_offset
    too_young = OFFSET_AFTER_ALL
    if min_lag_ms > 0:
        young = (s.base_offset for s in _closed_from(log, first_dirty) if s.age_timestamp_ms > now_ms - min_lag_ms)
        too_young = next(young, OFFSET_AFTER_ALL)
    upper = max(min(log.last_stable_offset, active, too_young), first_dirty)
    return max((s.base_offset for s in log.segments if s.base_offset <= upper), default=active)


def _overdue_at(log: LogSummary, first_dirty: int, max_lag_ms: int) -> int | None:
    stamps = [s.first_batch_timestamp_ms for s in _closed_from(log, first_dirty) if s.first_batch_timestamp_ms > 0]
    return min(stamps) + max_lag_ms if stamps else None


def _from_offset(segments: Sequence[SegmentSummary], offset: int) -> Sequence[SegmentSummary]:
    """From the segment that contains ``offset`` on."""
    containing = sum(segment.base_offset <= offset for segment in segments) - 1
    return segments[max(containing, 0) :]


def _closed_from(log: LogSummary, offset: int) -> Sequence[SegmentSummary]:
    if offset >= log.segments[-1].base_offset:
        return ()
    return _from_offset(log.segments[:-1], offset)
