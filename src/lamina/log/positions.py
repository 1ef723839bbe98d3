"""Where in the file of a segment an offset lies.

Owns the way from an offset to a batch: the nearest index entry, then batch headers. An entry that the log does not
confirm shows that the indexes are untrue: they are made again. Where the last batch begins is known without either:
that is what followers, and consumers who keep up, read. Must not know what is done with a batch.
"""

from collections.abc import Iterator

from lamina.errors import CorruptMessage
from lamina.log.index_rebuild import IndexesLost
from lamina.log.lease import Lease
from lamina.log.segment import Segment
from lamina.records.batch import BatchHeader


def find(segment: Segment, offset: int) -> tuple[int, BatchHeader] | None:
    """The first batch whose last offset is at or above ``offset``; ``None`` past the last batch."""
    for position, header in headers_from(segment, offset):
        if header.base_offset + header.last_offset_delta >= offset:
            return position, header
    return None


def headers_from(segment: Segment, offset: int) -> Iterator[tuple[int, BatchHeader]]:
    """Headers from the nearest index entry at or below ``offset`` on."""
    try:
        entry = segment.indexes.offsets.lookup(offset)
        if not 0 <= entry.position < max(segment.size_bytes, 1):
            raise CorruptMessage(f"an index of {segment.path()} points to position {entry.position}")
        headers = segment.headers(entry.position, segment.size_bytes)
        first = next(headers, None)
        confirmed = first is None or first[1].base_offset <= entry.offset or not entry.position
    except (FileNotFoundError, CorruptMessage):
        confirmed = False
    if not confirmed:
        position = segment.rebuild_indexes().offsets.lookup(offset).position
        yield from segment.headers(position, segment.size_bytes)
    elif first is not None:
        yield first
        yield from headers


def position_of(segment: Segment, offset: int) -> int:
    """Where a reader that may not see ``offset`` has to stop: the start of the batch that reaches it."""
    found = None if offset >= segment.next_offset else _place(segment, offset)
    return segment.size_bytes if found is None else found[0]


def _place(segment: Segment, offset: int) -> tuple[int, int] | None:
    """As ``find``: the position of the batch and its size."""
    if segment.tail is not None and segment.tail[0] <= offset < segment.next_offset:
        position = segment.tail[1]
        return position, segment.size_bytes - position
    found = find(segment, offset)
    return None if found is None else (found[0], found[1].size_bytes)


def end_of(segment: Segment, lease: Lease) -> int:
    """The offset behind the last whole batch of a range of this segment; where an index lies, the segment's end."""
    position = lease.position + lease.size_bytes
    try:
        entry = segment.indexes.offsets.lookup_position(position)
        for batch_at, header in segment.headers(entry.position, segment.size_bytes):
            if batch_at + header.size_bytes > position:
                return header.base_offset
    except (FileNotFoundError, CorruptMessage, IndexesLost):
        pass
    return segment.next_offset


def lease_batches(segment: Segment, offset: int, max_bytes: int, end: int) -> Lease | None:
    """The batches from the one that holds ``offset`` on, up to ``end``; at least one, otherwise ``max_bytes``."""
    found = _place(segment, offset)
    if found is None:
        return None
    position, size_bytes = found
    end_position = position_of(segment, end)
    if end_position <= position:
        return None
    return segment.lease(position, min(end_position - position, max(max_bytes, size_bytes)))
