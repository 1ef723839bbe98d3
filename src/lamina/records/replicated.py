"""Batches as their leader sent them: checked before a follower appends them.

Owns what is checked, and into which pieces much of it is divided, so that nobody has to wait for all of it. Must not
know logs.
"""

from collections.abc import Iterator

from lamina.records.batch import Buffer, check_crc, walk

PIECE_BATCHES = 128
PIECE_BYTES = 1 << 20


def checked_pieces(records: Buffer, leader_epoch: int) -> Iterator[memoryview]:
    """All whole batches, some at a time, each batch with the CRC that it should have.

    Ends before a batch of a leader epoch above ``leader_epoch``: it was written after the fetch was answered for, and
    nobody has compared its epoch with ours (KAFKA-18723, R31). Raises :class:`CorruptMessage`.
    """
    view = memoryview(records)
    start = end = batches = 0
    for position, header in walk(view):
        if header.leader_epoch > leader_epoch:
            break
        check_crc(view, position, header)
        end = position + header.size_bytes
        batches += 1
        if batches == PIECE_BATCHES or end - start >= PIECE_BYTES:
            yield view[start:end]
            start, batches = end, 0
    if end > start:
        yield view[start:end]
