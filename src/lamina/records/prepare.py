"""A client's batch made ready for its topic: checked, and in the topic's codec.

All of an append that grows with the records, and that needs nothing but the batch: it may run on a thread. Must not
know logs.
"""

from typing import NamedTuple

from lamina.errors import MessageTooLarge
from lamina.records.batch import (
    CODEC_MASK,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    BatchHeader,
    Buffer,
    Codec,
    compute_crc,
    pack_header,
    read_header,
)
from lamina.records.codecs import compress, decompress
from lamina.records.record_walk import Walk, walk_records
from lamina.records.validate import BatchRules, ValidatedBatch, validate_batch


class PreparedBatch(NamedTuple):
    batch: bytearray | memoryview
    validated: ValidatedBatch
    """Of ``batch``: where it was recompressed, with the header that it has now."""


_new_tuple = tuple.__new__


def prepare_batch(
    sent: bytearray | memoryview, rules: BatchRules, now_ms: int, walk: Walk = walk_records
) -> PreparedBatch:
    """Raises the error that the client gets; ``sent`` stays as it is.

    A batch that only the topic's codec makes too large is refused like one that was sent so, as in Kafka.
    """
    validated = validate_batch(sent, rules, now_ms, walk)
    codec = rules.codec
    if codec is None or codec == validated.header.codec_id:
        return _new_tuple(PreparedBatch, (sent, validated))
    batch = _recompress(sent, validated.header, codec, rules.max_decompressed_bytes, rules.codec_level)
    if len(batch) > rules.max_message_bytes:
        raise MessageTooLarge(
            f"the batch is {len(batch)} bytes as {codec.name.lower()}; the topic takes {rules.max_message_bytes}"
        )
    return PreparedBatch(batch, validated._replace(header=read_header(batch)))


def _recompress(batch: Buffer, header: BatchHeader, codec: Codec, limit_bytes: int, level: int | None) -> bytearray:
    """The batch at the start of ``batch`` in another codec: same records, same header but for codec, length and CRC."""
    view = memoryview(batch)
    records = decompress(header.codec_id, view[HEADER_BYTES : header.size_bytes], limit_bytes)
    packed = compress(codec, records, level)
    changed = header._replace(
        length=HEADER_BYTES - LOG_OVERHEAD_BYTES + len(packed), attributes=header.attributes & ~CODEC_MASK | codec
    )
    out = bytearray(pack_header(changed))
    out += packed
    out[:HEADER_BYTES] = pack_header(changed._replace(crc=compute_crc(out, 0, len(out))))
    return out
