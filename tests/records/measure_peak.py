"""Decompress a stream of zeros in a process of its own; print the outcome and the memory it took at its peak.

``python -m tests.records.measure_peak CODEC DECODED_BYTES LIMIT_BYTES``; the stream is built piece by piece,
so that building it does not count.
"""

import resource
import sys
import zlib

import cramjam
import lz4.frame

from lamina.errors import KafkaError
from lamina.records.batch import Codec
from lamina.records.codecs import decompress

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PIECE = bytes(1024 * 1024)


def zeros_as_gzip(pieces: int) -> bytes:
    compressor = zlib.compressobj(level=1, wbits=31)
    return b"".join(compressor.compress(PIECE) for _ in range(pieces)) + compressor.flush()


def zeros_as_snappy(pieces: int) -> bytes:
    block = bytes(cramjam.snappy.compress_raw(PIECE))
    return b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01" + (len(block).to_bytes(4, "big") + block) * pieces


def zeros_as_lz4(pieces: int) -> bytes:
    compressor = lz4.frame.LZ4FrameCompressor(block_linked=False)
    out = [compressor.begin(), *(compressor.compress(PIECE) for _ in range(pieces)), compressor.flush()]
    return b"".join(out)


def zeros_as_zstd(pieces: int) -> bytes:
    compressor = zstd.ZstdCompressor()
    return b"".join(compressor.compress(PIECE) for _ in range(pieces)) + compressor.flush()


def zeros_as_zstd_with_a_wide_window(pieces: int) -> bytes:
    """A frame of one piece, then one whose header claims a window of 128 MiB."""
    frame = bytearray(zeros_as_zstd(pieces))
    frame[5] = (27 - 10) << 3
    return zeros_as_zstd(1) + bytes(frame)


BUILDERS = {
    "gzip": (Codec.GZIP, zeros_as_gzip),
    "snappy": (Codec.SNAPPY, zeros_as_snappy),
    "lz4": (Codec.LZ4, zeros_as_lz4),
    "zstd": (Codec.ZSTD, zeros_as_zstd),
    "zstd-wide": (Codec.ZSTD, zeros_as_zstd_with_a_wide_window),
}


def peak_bytes() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main(name: str, decoded_bytes: int, limit_bytes: int) -> None:
    codec, build = BUILDERS[name]
    data = build(decoded_bytes // len(PIECE))
    decompress(codec, build(1), len(PIECE) * 16)  # what a codec's first use costs is not the data's doing
    before = peak_bytes()
    try:
        outcome = str(len(decompress(codec, data, limit_bytes)))
    except KafkaError as error:
        outcome = type(error).__name__
    print(outcome, peak_bytes() - before)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
