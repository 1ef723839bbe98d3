"""Batches as their leader sent them: checked before a follower appends them.

Owns what is checked, and into which pieces much of it is divided, so that nobody has to wait for all of it. Must not
know logs.
"""

from collections.abc import Iterator

from lamina.errors import CorruptMessage
from lamina.records.batch import Buffer, check_crc, walk

PIECE_BATCHES = 128
PIECE_BYTES = 1 << 20


def checked_pieces(records: Buffer, leader_epoch: int) -> Iterator[memoryview]:
    """All whole batches, some at a time, each batch with the CRC that it should have and behind the one before.

    No CRC covers offsets: that one is too large is seen by the next batch, so a piece waits for that. Ends before a
    batch of a leader epoch above ``leader_epoch``: it was written after the fetch was answered for, and nobody has
    compared its epoch with ours (KAFKA-18723, R31). Raises :class:`CorruptMessage`.
    """
    view = memoryview(records)
    start = end = batches = next_offset = 0
    for position, header in walk(view):
        if header.leader_epoch > leader_epoch:
            break
        check_crc(view, position, header)
        if header.base_offset < next_offset:
            raise CorruptMessage(f"the batch at offset {header.base_offset} comes after offset {next_offset - 1}")
        next_offset = header.next_offset
        if batches == PIECE_BATCHES or end - start >= PIECE_BYTES:
            yield view[start:end]
            start, batches = end, 0
        end = position + header.size_bytes
        batches += 1
    if end > start:
        yield view[start:end]
