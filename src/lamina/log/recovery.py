"""Opening a log: after a clean stop by looking at its end, after an unclean one by checking what was not flushed.

Owns everything that is true only after a crash. From the recovery point on every batch is checked; the first
bad one ends the log. Indexes, leader epochs, aborted transactions and producer state of that part are made
again from the batches. Must not know directories of several partitions, nor threads.
"""

from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from lamina.errors import CorruptMessage
from lamina.log.epochs import LeaderEpochs
from lamina.log.files import Disk
from lamina.log.identity import PARTITION_METADATA
from lamina.log.index_pair import IndexShape
from lamina.log.leftovers import complete_swap_operations, segment_logs
from lamina.log.producer_replay import rebuild_aborted, rebuild_producers, record_in_segment
from lamina.log.producer_states import ProducerStates
from lamina.log.scan import BadBatch, checked_batches, headers
from lamina.log.segment import ABORTED_INDEX, Segment
from lamina.log.segment_end import count_tail
from lamina.log.segment_list import SegmentList
from lamina.log.snapshots import snapshot_offsets, snapshot_path, write_snapshot
from lamina.records.marker import read_marker


@dataclass(slots=True, frozen=True)
class Opening:
    """What the directory knows of a log before it is opened."""

    clean: bool
    recovery_point: int
    log_start_offset: int
    high_watermark: int | None
    """As it was last written down, if ever: transactions that ended above it count as open for readers."""
    may_have_gaps: bool
    """Whether segments may lie apart, as cleaning leaves them."""
    now_ms: int
    producer_expiration_ms: int
    initial_segment_bytes: int = 0

    @property
    def producers_since_ms(self) -> int:
        """A snapshot's producers that were silent since then are forgotten; the log's own are not (Kafka's way)."""
        return self.now_ms - self.producer_expiration_ms


@dataclass(slots=True)
class LogState:
    """What is true of a log when it is opened."""

    segments: SegmentList
    producers: ProducerStates
    epochs: LeaderEpochs
    log_start_offset: int
    recovery_point: int
    high_watermark: int


@dataclass(slots=True)
class Report:
    """What opening a log found; for the log line and the progress bar."""

    recovered_bytes: int = 0
    truncated_bytes: int = 0
    removed_segments: int = 0
    reason: str | None = None
    """Why the log was cut."""


def open_log(disk: Disk, directory: str, shape: IndexShape, opening: Opening) -> tuple[LogState, Report]:
    """The state of the log in ``directory``, which is made sound first."""
    report = Report()
    complete_swap_operations(disk, directory)
    is_just_made = not opening.clean and _is_just_made(disk, directory)
    segments = _load_segments(disk, directory, shape, opening)
    epochs = LeaderEpochs.load(disk, directory)
    producers = ProducerStates()
    if is_just_made:
        # There is nothing to recover, which would make its files a second time.
        segments.active.seal()
        epochs.save(sync=False)
    clean = is_just_made or (opening.clean and _count_tail(segments.active))
    if clean:
        recovery_point = segments.active.next_offset
        if not epochs.entries and recovery_point > segments.first.base_offset:
            _read_missing_epochs(segments, epochs, segments.first.base_offset, recovery_point)
            epochs.save()
        _remove_stray_snapshots(disk, directory, segments)
    else:
        recovery_point = _recover(disk, directory, segments, epochs, producers, opening, report)
    if segments.active.next_offset < opening.log_start_offset:
        epochs.truncate_from_end(0)
        epochs.save()
        segments = _start_empty(disk, directory, shape, segments, opening)
        producers.clear()
    end_offset = segments.active.next_offset
    log_start_offset = max(opening.log_start_offset, segments.first.base_offset)
    epochs.truncate_from_end(end_offset + 1)
    epochs.truncate_from_start(log_start_offset)
    for segment in segments:
        if segment.aborted.exists and not segment.aborted.is_sound(segment.base_offset):
            rebuild_aborted(disk, directory, segments, segment)
    if clean:
        since_ms, high_watermark = opening.producers_since_ms, opening.high_watermark
        rebuild_producers(disk, directory, segments, producers, end_offset, since_ms, high_watermark)
    replicated_to = min(max(opening.high_watermark or 0, log_start_offset), end_offset)
    producers.high_watermark_moved(replicated_to)
    state = LogState(segments, producers, epochs, log_start_offset, min(recovery_point, end_offset), replicated_to)
    return state, report


def _is_just_made(disk: Disk, directory: str) -> bool:
    return all(entry.name == PARTITION_METADATA for entry in disk.scan(directory))


def _load_segments(disk: Disk, directory: str, shape: IndexShape, opening: Opening) -> SegmentList:
    entries = disk.scan(directory)
    names = {entry.name for entry in entries}
    segments = [
        Segment.load(
            disk,
            directory,
            int(entry.name[:20]),
            shape,
            size_bytes=entry.size_bytes,
            modified_ms=entry.modified_ms,
            has_aborted=entry.name[:20] + ABORTED_INDEX in names,
        )
        for entry in segment_logs(entries)
    ]
    for segment, following in pairwise(segments):
        segment.next_offset = following.base_offset
    if not segments:
        segments = [_empty_segment(disk, directory, shape, opening)]
    return SegmentList(segments)


def _count_tail(segment: Segment) -> bool:
    """Whether the log ends as a clean stop left it; if not, somebody was at its files and it is recovered."""
    try:
        count_tail(segment)
    except CorruptMessage:
        return False
    return True


def _start_empty(disk: Disk, directory: str, shape: IndexShape, segments: SegmentList, opening: Opening) -> SegmentList:
    """Fact 87: a log that ends below its own start holds nothing that anybody may read."""
    for offset in snapshot_offsets(disk, directory):
        disk.unlink(snapshot_path(directory, offset))
    for segment in segments:
        _remove_segment(disk, segment)
    first = _empty_segment(disk, directory, shape, opening)
    disk.sync_dir(directory)
    return SegmentList([first])


def _empty_segment(disk: Disk, directory: str, shape: IndexShape, opening: Opening) -> Segment:
    initial_bytes = opening.initial_segment_bytes
    segment = Segment.create(
        disk, directory, opening.log_start_offset, shape, opening.now_ms, initial_bytes=initial_bytes
    )
    if not initial_bytes:
        # Its first batch opens it again: partitions that are not written to hold no descriptors.
        segment.close()
    return segment


def _remove_segment(disk: Disk, segment: Segment) -> None:
    segment.close()
    for path in [*segment.paths()[1:], segment.path()]:
        disk.unlink(path)


def _recover(
    disk: Disk,
    directory: str,
    segments: SegmentList,
    epochs: LeaderEpochs,
    producers: ProducerStates,
    opening: Opening,
    report: Report,
) -> int:
    """Check every segment from the one that holds the recovery point on. Returns the offset that is safe on disk.

    The leader epochs of these are left to the next flush to be written: another recovery would find the same.
    """
    first = segments.number_of(min(opening.recovery_point, segments.active.base_offset))
    unflushed = segments.between(segments[first].base_offset, segments.active.base_offset + 1)
    start = unflushed[0].base_offset
    for offset in snapshot_offsets(disk, directory):
        if offset > start:
            disk.unlink(snapshot_path(directory, offset))
    _remove_stray_snapshots(disk, directory, segments)
    epochs.truncate_from_end(start)
    checkpointed = epochs.entries
    _read_missing_epochs(segments, epochs, max(opening.log_start_offset, segments.first.base_offset), start)
    if epochs.entries != checkpointed:
        epochs.save()
    since_ms, high_watermark = opening.producers_since_ms, opening.high_watermark
    rebuild_producers(disk, directory, segments, producers, start, since_ms, high_watermark)
    for number, segment in enumerate(unflushed):
        if number:
            write_snapshot(disk, directory, segment.base_offset, producers.producers.values(), sync=False)
        size_bytes = segment.size_bytes
        later = unflushed[number + 1 :]
        bad = _recover_segment(segment, epochs, producers)
        if bad is None and later and not opening.may_have_gaps:
            bad = _gap_before(later[0], segment)
        report.recovered_bytes += segment.size_bytes
        if bad is not None:
            report.reason = f"{segment.path()} {bad}"
            report.truncated_bytes += size_bytes - segment.size_bytes + sum(other.size_bytes for other in later)
            report.removed_segments = len(later)
            _cut_after(disk, directory, segments, segment, later)
            break
    return opening.recovery_point


def _gap_before(following: Segment, segment: Segment) -> BadBatch | None:
    """Whether a segment lost its last batches, or a whole segment its name, while later ones reached the disk."""
    if segment.next_offset == following.base_offset:
        return None
    return BadBatch(segment.size_bytes, f"offset {segment.next_offset} is missing before {following.base_offset}")


def _cut_after(disk: Disk, directory: str, segments: SegmentList, segment: Segment, later: list[Segment]) -> None:
    """End the log behind what ``segment`` has of good batches.

    The segments after it go first, the last one first: a crash in between leaves a longer log, never a hole.
    """
    for other in reversed(later):
        _remove_segment(disk, other)
        disk.sync_dir(directory)
    segments.remove(later)
    segment.cut_file()


def _recover_segment(segment: Segment, epochs: LeaderEpochs, producers: ProducerStates) -> BadBatch | None:
    """Check and index one segment again, up to the first bad batch, which is returned."""
    size_bytes = segment.size_bytes
    segment.aborted.clear()
    segment.begin_indexes()
    segment.size_bytes = 0
    segment.next_offset = segment.base_offset
    bad: BadBatch | None = None
    with segment.lease(0, size_bytes) as lease:
        try:
            for position, header, batch in checked_batches(lease.file, 0, size_bytes):
                if header.base_offset < segment.next_offset or not segment.fits(header.last_offset):
                    raise BadBatch(position, f"offset {header.base_offset} after {segment.next_offset - 1}")
                epochs.assign(header.leader_epoch, header.base_offset)
                if header.producer_id >= 0:
                    marker = read_marker(batch, 0, header) if header.is_control else None
                    record_in_segment(producers, segment, header, header.base_offset, marker)
                segment.count_batch(position, header.size_bytes, header.last_offset, header.max_timestamp)
        except CorruptMessage as error:
            bad = error if isinstance(error, BadBatch) else BadBatch(segment.size_bytes, str(error))
    segment.seal()
    return bad


def _read_missing_epochs(segments: SegmentList, epochs: LeaderEpochs, log_start_offset: int, end_offset: int) -> None:
    """Read from the batch headers what the checkpoint does not tell of ``[log_start_offset, end_offset)``.

    It did not survive, or was cut for a log start that did not.
    """
    known = epochs.entries
    first_known = known[0].start_offset if known else end_offset
    if first_known <= log_start_offset:
        return
    epochs.truncate_from_end(0)
    for segment in segments.between(log_start_offset, first_known):
        # A segment that was damaged after it was flushed tells what comes before the damage.
        with suppress(CorruptMessage):
            for _, header in segment.headers(0, segment.size_bytes):
                epochs.assign(header.leader_epoch, header.base_offset)
    for entry in known:
        epochs.assign(entry.epoch, entry.start_offset)


def latest_unflushed_epoch(disk: Disk, directory: str, recovery_point: int) -> int:
    """The newest leader epoch of the batches that a recovery would read of a log that stays closed; -1 without any."""
    logs = segment_logs(disk.scan(directory))
    number = bisect_right(logs, recovery_point, key=lambda entry: int(entry.name[:20]))
    latest = -1
    for entry in logs[max(number - 1, 0) :]:
        file = disk.open(f"{directory}/{entry.name}")
        try:
            with suppress(CorruptMessage):
                for _, header in headers(file, 0, entry.size_bytes):
                    latest = max(latest, header.leader_epoch)
        finally:
            file.close()
    return latest


def _remove_stray_snapshots(disk: Disk, directory: str, segments: SegmentList) -> None:
    """Snapshots belong to the start of a segment; one may lie above the last base, at most at the end.

    Any other belonged to a segment that is gone: the batches between it and the next segment cannot be replayed.
    """
    bases = {segment.base_offset for segment in segments}
    offsets = snapshot_offsets(disk, directory)
    end_offset = segments.active.next_offset
    above = [offset for offset in offsets if segments.active.base_offset < offset <= end_offset]
    for offset in offsets:
        if offset not in bases and offset not in above[-1:]:
            disk.unlink(snapshot_path(directory, offset))
