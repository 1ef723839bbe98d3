"""The last batches of a segment: taken into account when it is opened, or cut off.

Must not know the log that a segment belongs to, nor what its checkpoints say.
"""

from lamina.log.positions import headers_from
from lamina.log.segment import Segment
from lamina.records.batch import MAX_RELATIVE_OFFSET


def count_tail(segment: Segment) -> None:
    """Take the batches after the last index entry into account: all that a clean start has to read."""
    segment.first_timestamp()  # Read here: an append asks for it, and must not wait for the disk.
    tail = list(headers_from(segment, segment.base_offset + MAX_RELATIVE_OFFSET))
    # All before the first is counted: the size must stay the file's where recovery has to follow.
    for _, header in tail:
        segment.require_fit(header)
    segment.indexes.count_from_last_entry()
    for position, header in tail:
        segment.count_batch(position, header.size_bytes, header.last_offset, header.max_timestamp)


def cut_indexes(segment: Segment, offset: int) -> None:
    """Forget what the indexes say of ``offset`` and above, where the file was cut; the segment is writable then."""
    segment.aborted.truncate_to(offset)
    try:
        segment.indexes.truncate_to(offset)
    except FileNotFoundError:
        segment.rebuild_indexes().truncate_to(offset)
    segment.open_for_append()
    segment.forget_tail()
    count_tail(segment)
