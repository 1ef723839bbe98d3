"""Batches that lie, under a CRC that is right."""

from lamina.records.batch import HEADER_BYTES, Codec, compute_crc, pack_header, read_header
from lamina.records.codecs import compress
from lamina.records.record import Record, build_batch


def reseal(batch: bytes | bytearray, **change: int) -> bytearray:
    """The batch with other header fields; length and CRC are made right unless they are what is changed."""
    sealed = bytearray(batch)
    header = read_header(batch)._replace(**({"length": len(batch) - 12} | change))
    sealed[:HEADER_BYTES] = pack_header(header)
    crc = change.get("crc", compute_crc(sealed, 0, len(sealed)))
    sealed[:HEADER_BYTES] = pack_header(header._replace(crc=crc))
    return sealed


def with_payload(payload: bytes, *, count: int = 1, codec: Codec = Codec.NONE) -> bytearray:
    """A batch that counts ``count`` records and holds ``payload`` instead."""
    head = build_batch([Record(index, 0, b"k", b"v") for index in range(count)])[:HEADER_BYTES]
    return reseal(head + compress(codec, payload), attributes=codec)
