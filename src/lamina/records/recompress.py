"""A batch in another codec: same records, same header but for codec, length and CRC.

For topics whose ``compression.type`` is not the producer's. Must not look at records.
"""

from lamina.records.batch import (
    CODEC_MASK,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    BatchHeader,
    Buffer,
    Codec,
    compute_crc,
    pack_header,
)
from lamina.records.codecs import compress, decompress


def recompress(
    batch: Buffer, header: BatchHeader, codec: Codec, limit_bytes: int, level: int | None = None
) -> bytearray:
    """The whole batch at the start of ``batch``, its records compressed with ``codec``, at the level that is asked."""
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
