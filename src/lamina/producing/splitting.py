"""A record batch that is too large for its topic, as two smaller ones.

Owns that both together are what the one was: the same records in the same order, with the same sequences. So a log that
has seen neither takes both in its place. They are compressed as the codec does by itself. Pure. Must not know who finds
it too large.
"""

from collections.abc import Sequence
from typing import Final

from lamina.records.batch import NO_LEADER_EPOCH, NO_SEQUENCE, BatchHeader, Buffer, Codec, add_to_sequence, stamp, walk
from lamina.records.record import Record, build_batch, read_records

_LIMIT_BYTES: Final = 128 * 1024 * 1024
"""More than any batch of several records takes before it is compressed."""


def halves(batch: Buffer) -> tuple[bytearray, bytearray]:
    """By records, of which there are two or more."""
    ((at, header),) = walk(batch)
    records = read_records(batch, at, header, _LIMIT_BYTES)
    middle = len(records) // 2
    return _part(header, records, 0, middle), _part(header, records, middle, len(records))


def _part(header: BatchHeader, records: Sequence[Record], first: int, end: int) -> bytearray:
    sequence = header.base_sequence
    part = build_batch(
        records[first:end],
        codec=Codec(header.codec_id),
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=NO_SEQUENCE if sequence == NO_SEQUENCE else add_to_sequence(sequence, first),
        is_transactional=header.is_transactional,
    )
    stamp(part, 0, 0, NO_LEADER_EPOCH)
    return part
