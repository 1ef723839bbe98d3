"""Cutting a log together with what its directory has written down of it.

Owns the order: checkpoints go down on disk before the log is cut, because what is written again above the cut is
unproven. Must not know how a log is cut, nor why.
"""

from lamina.log.directory import LogDirectory
from lamina.log.partition_log import PartitionLog
from lamina.log.trimming import truncate_fully_and_start_at, truncate_to


def truncate(directory: LogDirectory, log: PartitionLog, offset: int, now_ms: int) -> None:
    """Cut the end of a log."""
    log.require_online()
    if offset < log.segments.first.base_offset:
        truncate_fully(directory, log, offset, now_ms)
    elif offset < log.log_end_offset:
        _lower_checkpoints(directory, log, offset)
        truncate_to(log, offset, now_ms)
        # The cut is at the start of a batch, which may lie below the offset that was asked for.
        _lower_checkpoints(directory, log, log.log_end_offset)
        _lower_cleaner_offset(directory, log)


def truncate_fully(directory: LogDirectory, log: PartitionLog, offset: int, now_ms: int) -> None:
    """Empty a log and begin it at ``offset``, which is written down first: without segments nothing else tells."""
    log.require_online()
    _lower_checkpoints(directory, log, min(offset, log.log_start_offset))
    directory.write_checkpoints(directory.remembered.log_start_at((log.topic, log.partition), offset))
    truncate_fully_and_start_at(log, offset, now_ms)
    _lower_cleaner_offset(directory, log)


def _lower_checkpoints(directory: LogDirectory, log: PartitionLog, offset: int) -> None:
    """Make sure that no checkpoint on disk speaks of anything at or above ``offset``."""
    key, remembered = (log.topic, log.partition), directory.remembered
    log.recovery_point = min(log.recovery_point, offset)
    if remembered.recovery_points.get(key, 0) > offset:
        directory.write_recovery_points()
    if remembered.log_starts.get(key, 0) > offset:
        directory.write_checkpoints(remembered.log_start_at(key, offset))


def _lower_cleaner_offset(directory: LogDirectory, log: PartitionLog) -> None:
    """Fact 28: what is written again in the active segment was not cleaned."""
    key, base_offset = (log.topic, log.partition), log.segments.active.base_offset
    if directory.remembered.cleaner_offsets.get(key, 0) > base_offset:
        directory.write_cleaner_offsets({key: base_offset})
