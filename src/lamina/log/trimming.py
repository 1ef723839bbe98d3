"""Making a log shorter: at its end (truncation), at its start (a new log start offset), or all of it.

Owns the order of the steps, so that a crash between any two leaves a log without holes. Must not decide what
is to go: followers, retention and DeleteRecords do. The recovery point has to be lowered on disk before an end
is cut (directory.py does).
"""

from collections.abc import Sequence

from lamina.errors import OffsetOutOfRange
from lamina.log.leftovers import DELETED
from lamina.log.partition_log import Doomed, PartitionLog, initial_segment_bytes
from lamina.log.producer_replay import rebuild_producers
from lamina.log.segment import Segment
from lamina.log.snapshots import snapshot_offsets, snapshot_path


def truncate_to(log: PartitionLog, offset: int, now_ms: int) -> None:
    """Remove every batch that reaches ``offset``, so that the log ends at or below it."""
    if offset >= log.log_end_offset:
        return
    if offset < log.segments.first.base_offset:
        truncate_fully_and_start_at(log, offset, now_ms)
        return
    try:
        doomed = [segment for segment in log.segments if segment.base_offset > offset]
        # From the end, each name made durable before the next goes: a crash leaves a shorter log, never a hole.
        for segment in reversed(doomed):
            remove_segments(log, [segment], now_ms)
            log.disk.sync_dir(log.path)
        log.segments.active.truncate_to(offset)
        _end_at(log, log.segments.active.next_offset, known_up_to=log.segments.active.next_offset)
    except OSError as error:
        raise log.fail(error) from error


def truncate_fully_and_start_at(log: PartitionLog, offset: int, now_ms: int) -> None:
    """Remove everything; the log is empty and begins at ``offset``."""
    try:
        for segment in reversed(list(log.segments)):
            remove_segments(log, [segment], now_ms)
            log.disk.sync_dir(log.path)
        initial_bytes = initial_segment_bytes(log.config)
        log.segments.add(Segment.create(log.disk, log.path, offset, log.shape, now_ms, initial_bytes=initial_bytes))
        log.log_start_offset = offset
        # What the log knew of its producers went with their batches: no snapshot may bring it back.
        _end_at(log, offset, known_up_to=-1)
        log.epochs.clear()
    except OSError as error:
        raise log.fail(error) from error


def _end_at(log: PartitionLog, offset: int, *, known_up_to: int) -> None:
    log.log_end_offset = offset
    log.log_start_offset = min(log.log_start_offset, offset)
    log.recovery_point = min(log.recovery_point, offset)
    if log.on_truncate is not None:
        log.on_truncate(offset)
    log.epochs.truncate_from_end(offset)
    for snapshot in snapshot_offsets(log.disk, log.path):
        if snapshot > known_up_to:
            log.disk.unlink(snapshot_path(log.path, snapshot))
    rebuild_producers(log.disk, log.path, log.segments, log.producers, log.log_start_offset, offset)


def move_log_start_offset(log: PartitionLog, offset: int) -> None:
    """Records below ``offset`` are gone for every reader; whole segments below it go with the next retention."""
    if offset > log.log_end_offset:
        raise OffsetOutOfRange(f"{log.name} ends at {log.log_end_offset}, its start cannot move to {offset}")
    if offset > log.log_start_offset:
        log.log_start_offset = offset
        try:
            log.epochs.truncate_from_start(offset)
        except OSError as error:
            raise log.fail(error) from error


def remove_segments(log: PartitionLog, segments: Sequence[Segment], now_ms: int) -> None:
    """Take segments out of the log: renamed now, removed after ``file.delete.delay.ms``. Leases stay readable."""
    log.segments.remove(segments)
    for segment in segments:
        segment.rename(DELETED)
        segment.close()
        paths = segment.paths()
        snapshot = snapshot_path(log.path, segment.base_offset)
        if log.disk.exists(snapshot):
            log.disk.rename(snapshot, snapshot + DELETED)
            paths.append(snapshot + DELETED)
        log.doomed.append(Doomed(now_ms + log.config.file_delete_delay_ms, paths))


def take_due_paths(log: PartitionLog, now_ms: int) -> list[str]:
    """The files whose time has come; the caller removes them, on a thread if there are many."""
    due = [path for doomed in log.doomed if doomed.due_ms <= now_ms for path in doomed.paths]
    log.doomed = [doomed for doomed in log.doomed if doomed.due_ms > now_ms]
    return due
