"""Producer state from what is on disk: the newest good snapshot, and the batches after it.

Used for each append, when a log is opened, and after it was truncated: one way to take a batch into account, and
to make an aborted-transaction index again that cannot be believed. A segment that was flushed and has been damaged
since tells what comes before the damage: an old bad byte must not keep a log from being opened.
Must not know why it is asked.
"""

from contextlib import suppress

from lamina.errors import CorruptMessage
from lamina.log.files import Disk
from lamina.log.positions import find
from lamina.log.producer_states import ProducerStates
from lamina.log.segment import Segment
from lamina.log.segment_list import SegmentList
from lamina.log.snapshots import read_snapshot, snapshot_offsets, snapshot_path
from lamina.log.transaction_index import AbortedTransaction
from lamina.records.batch import CONTROL_BIT, BatchHeader, Buffer
from lamina.records.marker import ControlType, Marker, read_marker


def checked_marker(
    producers: ProducerStates, batch: Buffer, header: BatchHeader, transaction_version: int
) -> Marker | None:
    """The marker in a control batch that is to be appended. Raises the producer's error if it may not be."""
    marker = read_marker(batch, 0, header)
    if marker is not None and marker.coordinator_epoch is not None:
        producers.check_marker(header, marker.coordinator_epoch, transaction_version)
    return marker


def record_producer(
    producers: ProducerStates, header: BatchHeader, base_offset: int, marker: Marker | None
) -> AbortedTransaction | None:
    """Take a batch with a producer id into account. Returns what an abort adds to its segment's index."""
    if not header.attributes & CONTROL_BIT:
        producers.record_batch(header, base_offset)
    elif marker is not None and marker.coordinator_epoch is not None:
        is_abort = marker.control_type is ControlType.ABORT
        return producers.record_marker(header, base_offset, marker.coordinator_epoch, is_abort=is_abort)
    return None


def prepare_abort(producers: ProducerStates, segment: Segment, producer_id: int, marker: Marker) -> None:
    """Open the transaction index before the marker is written: without a descriptor nothing may be half done."""
    if marker.control_type is ControlType.ABORT and producers.has_any_open(producer_id):
        segment.aborted.open_for_append()


def record_in_segment(
    producers: ProducerStates, segment: Segment, header: BatchHeader, base_offset: int, marker: Marker | None
) -> None:
    """As ``record_producer``; an aborted transaction is added to the segment's index."""
    aborted = record_producer(producers, header, base_offset, marker)
    if aborted is not None:
        segment.aborted.append(aborted)


def rebuild_producers(
    disk: Disk,
    directory: str,
    segments: SegmentList,
    producers: ProducerStates,
    end_offset: int,
    since_ms: int | None = None,
    high_watermark: int | None = None,
) -> None:
    """Make ``producers`` what it is at ``end_offset``, the end of the log or of what is known to be good.

    Everything that is in the files counts, also below the log start. Otherwise a producer whose last records are
    deleted would be told that it has left some out, and a transaction that began there would count as ended.

    A snapshot does not tell which transactions ended above the ``high_watermark``; one at or below it need not. Nor
    need the one at the first segment, which is all that is left of what was before: segments go below the high
    watermark alone, which may have been written down earlier.
    """
    producers.clear()
    newest = end_offset
    if high_watermark is not None:
        newest = min(max(high_watermark, segments.first.base_offset), end_offset)
    start = _restore_newest(disk, directory, producers, newest, since_ms)
    for segment in segments.between(start, end_offset):
        with suppress(CorruptMessage):
            _replay(segment, producers, start, end_offset)


def _restore_newest(disk: Disk, directory: str, producers: ProducerStates, newest: int, since_ms: int | None) -> int:
    """Restore the newest good snapshot at or below ``newest`` and return its offset. Bad ones are removed."""
    for offset in reversed(snapshot_offsets(disk, directory)):
        if offset > newest:
            continue
        try:
            restored = read_snapshot(disk, directory, offset)
        except ValueError:
            disk.unlink(snapshot_path(directory, offset))
            continue
        for producer in restored:
            producers.note_id(producer.producer_id)
            if since_ms is None or producer.current_txn_first_offset is not None or producer.last_timestamp > since_ms:
                producers.restore(producer)
        return offset
    return 0


def _replay(segment: Segment, producers: ProducerStates, start: int, end_offset: int) -> None:
    found = find(segment, start) if start > segment.base_offset else (0, None)
    if found is None:
        return
    for position, header in segment.headers(found[0], segment.size_bytes):
        if header.base_offset >= end_offset:
            return
        if header.producer_id >= 0:
            record_producer(producers, header, header.base_offset, marker_at(segment, position, header))


def rebuild_aborted(disk: Disk, directory: str, segments: SegmentList, segment: Segment) -> None:
    """Write a segment's aborted-transaction index again: from its markers, and what was open where it begins."""
    producers = ProducerStates()
    rebuild_producers(disk, directory, segments, producers, segment.base_offset)
    segment.aborted.clear()
    with suppress(CorruptMessage):
        for position, header in segment.headers(0, segment.size_bytes):
            if header.producer_id >= 0:
                marker = marker_at(segment, position, header)
                record_in_segment(producers, segment, header, header.base_offset, marker)
    segment.aborted.close()


def marker_at(segment: Segment, position: int, header: BatchHeader) -> Marker | None:
    """What the batch says if it is a control batch."""
    if not header.attributes & CONTROL_BIT:
        return None
    with segment.lease(position, header.size_bytes) as lease:
        return read_marker(lease.read(), 0, header)
