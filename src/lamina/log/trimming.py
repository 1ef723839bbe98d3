"""Making a log shorter: at its end (truncation), at its start (a new log start offset), or all of it.

Owns the order of the steps, so that a crash between any two leaves a log without holes. Must not decide what
is to go: followers, retention and DeleteRecords do. The recovery point has to be lowered on disk before an end
is cut (directory.py does).
"""

from collections.abc import Sequence

from lamina.errors import OffsetOutOfRange
from lamina.log.files import TEMPORARY, copy_file
from lamina.log.leftovers import DELETED
from lamina.log.partition_log import Doomed, PartitionLog, initial_segment_bytes
from lamina.log.producer_replay import rebuild_producers
from lamina.log.segment import Segment
from lamina.log.segment_end import truncate_segment
from lamina.log.snapshots import snapshot_offsets, snapshot_path


def truncate_to(log: PartitionLog, offset: int, now_ms: int) -> None:
    """Remove every batch that reaches ``offset``, which is not below the first segment; the log ends there or below."""
    log.require_online()
    if offset >= log.log_end_offset:
        return
    try:
        doomed = [segment for segment in log.segments if segment.base_offset > offset]
        # From the end, each name made durable before the next goes: a crash leaves a shorter log, never a hole.
        for segment in reversed(doomed):
            remove_segments(log, [segment], now_ms)
            log.disk.sync_dir(log.path)
        _own_active(log)
        truncate_segment(log.segments.active, offset)
        _end_at(log, log.segments.active.next_offset)
    except OSError as error:
        raise log.fail(error) from error


def _own_active(log: PartitionLog) -> None:
    """Give the segment that is cut a file of its own: a backup may have linked it while it was closed.

    The lowered recovery point is on disk by now, so a backup either linked it before, and this sees it, or sees
    the recovery point and does not keep its link.
    """
    shared = log.segments.active
    path = shared.path()
    if not log.disk.is_shared(path):
        return
    copy_file(log.disk, path, path + TEMPORARY, shared.size_bytes)
    log.disk.rename(path + TEMPORARY, path)
    log.disk.sync_dir(log.path)
    own = Segment.load(
        log.disk,
        log.path,
        shared.base_offset,
        log.shape,
        size_bytes=shared.size_bytes,
        modified_ms=shared.modified_ms,
        has_aborted=shared.aborted.exists,
    )
    own.next_offset = shared.next_offset
    shared.close()
    log.segments.add(own)


def truncate_fully_and_start_at(log: PartitionLog, offset: int, now_ms: int) -> None:
    """Remove everything; the log is empty and begins at ``offset``."""
    log.require_online()
    try:
        for segment in reversed(list(log.segments)):
            remove_segments(log, [segment], now_ms)
            log.disk.sync_dir(log.path)
        for snapshot in snapshot_offsets(log.disk, log.path):
            # What the log knew of its producers went with their batches: no snapshot may bring it back.
            log.disk.unlink(snapshot_path(log.path, snapshot))
        initial_bytes = initial_segment_bytes(log.config)
        log.segments.add(Segment.create(log.disk, log.path, offset, log.shape, now_ms, initial_bytes=initial_bytes))
        log.disk.sync_dir(log.path)
        log.log_start_offset = offset
        _end_at(log, offset)
        log.epochs.clear()
    except OSError as error:
        raise log.fail(error) from error


def _end_at(log: PartitionLog, offset: int) -> None:
    log.log_end_offset = offset
    log.log_start_offset = min(log.log_start_offset, offset)
    log.recovery_point = min(log.recovery_point, offset)
    if log.on_truncate is not None:
        log.on_truncate(offset)
    log.epochs.truncate_from_end(offset)
    for snapshot in snapshot_offsets(log.disk, log.path):
        if snapshot > offset:
            log.disk.unlink(snapshot_path(log.path, snapshot))
    rebuild_producers(log.disk, log.path, log.segments, log.producers, log.log_start_offset, offset)


def move_log_start_offset(log: PartitionLog, offset: int) -> None:
    """Records below ``offset`` are gone for every reader; whole segments below it go with the next retention."""
    log.require_online()
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
