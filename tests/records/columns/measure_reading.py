"""Read a batch of values of a mebibyte in a process of its own; print how many there were, and the memory at its peak.

``python -m tests.records.columns.measure_reading CODEC MEBIBYTES``; the batch is built record by record, so that
building it does not count.
"""

import sys

import lz4.frame

from lamina.records.batch import HEADER_BYTES, Codec
from lamina.records.codecs import compress
from lamina.records.columns.arrow import record_batches
from lamina.records.record import Record, build_batch
from tests.records.forgery import reseal
from tests.records.measure_peak import peak_bytes

VALUE = b"0123456789abcdef" * (64 * 1024)
_XERIAL_HEADER_BYTES = 16


def batch(codec: Codec, count: int) -> bytes:
    stored = bytearray()
    lz4_frame = lz4.frame.LZ4FrameCompressor(block_linked=False)
    if codec is Codec.LZ4:
        stored += lz4_frame.begin()
    for number in range(count):
        record = bytes(build_batch([Record(number, 0, b"k", VALUE)], base_offset=0)[HEADER_BYTES:])
        if codec is Codec.LZ4:
            stored += lz4_frame.compress(record)
        elif codec is Codec.SNAPPY and number:
            stored += compress(codec, record)[_XERIAL_HEADER_BYTES:]
        else:
            stored += compress(codec, record)
    if codec is Codec.LZ4:
        stored += lz4_frame.flush()
    head = build_batch([Record(0, 0, b"k", b"v")])[:HEADER_BYTES]
    return bytes(reseal(head + stored, attributes=codec, record_count=count, last_offset_delta=count - 1))


def read(data: bytes) -> int:
    batches = record_batches(
        data,
        columns=["key", "value", "offset"],
        start_offset=0,
        end_offset=2**62,
        aborted=None,
        max_batch_bytes=16 * 1024 * 1024,
        name="orders-0",
    )
    return sum(found.num_rows for found in batches)


def main(codec: Codec, count: int) -> None:
    read(batch(codec, 40))  # what a codec's and a kernel's first use costs is not the batch's doing
    data = batch(codec, count)
    before = peak_bytes()
    print(read(data), peak_bytes() - before)


if __name__ == "__main__":
    main(Codec[sys.argv[1]], int(sys.argv[2]))
