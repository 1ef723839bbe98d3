"""Compress and decompress the records of a batch, never past a limit.

Owns the codecs as Kafka's clients frame them. What a frame claims about its size is not believed: memory
grows with the bytes that were really decoded, and stops at ``limit_bytes``, or at a piece. What is written is what
Java's readers take: they are the strictest. Must not know batches or records.
"""

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

import lz4.frame

from lamina.errors import CorruptMessage, MessageTooLarge, UnsupportedCompression
from lamina.records.batch import Buffer, Codec
from lamina.records.snappy import compress_xerial, decompress_snappy, decompress_snappy_blocks

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_PIECE_BYTES = 64 * 1024
"""Data is fed and taken in pieces of this size, so that a library's own buffers stay small."""

_MOST_FRAMES = 1000
"""Clients send one. Each costs a decoder, and an empty one is 9 bytes: many could hold a core for long."""

_GZIP_WBITS = 31
DEFAULT_LEVELS = {Codec.GZIP: -1, Codec.LZ4: 9, Codec.ZSTD: 3}
"""What Kafka's clients and brokers use unless they are told otherwise; snappy has no levels."""

_LZ4_FAST = 0
"""How the library names the fast compressor, which Java stands behind its default level of 9."""

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_CHEAP_WINDOW_BYTES = 8 * 1024 * 1024
_ZSTD_SINGLE_SEGMENT_BIT = 0x20

_LZ4_FLAGS_AT = 4
_LZ4_INDEPENDENT_BLOCKS_BIT = 0x20


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes | bytearray:
    """``data`` in the codec's framing; without a level, at the one that Kafka's clients use by default."""
    if level is None:
        level = DEFAULT_LEVELS.get(codec, 0)
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            return zlib.compress(data, level=level, wbits=_GZIP_WBITS)
        case Codec.SNAPPY:
            return compress_xerial(data)
        case Codec.LZ4:
            # Java refuses linked blocks, and its own frames carry neither content size nor checksum: the
            # batch's header has a length and a CRC already.
            framed: bytes = lz4.frame.compress(
                data,
                compression_level=_LZ4_FAST if level == DEFAULT_LEVELS[codec] else level,
                block_size=lz4.frame.BLOCKSIZE_MAX64KB,
                block_linked=False,
                content_checksum=False,
                store_size=False,
            )
            return framed
        case Codec.ZSTD:
            return zstd.compress(data, level=level)


def decompress(codec_id: int, data: Buffer, limit_bytes: int) -> Buffer:
    """What ``data`` was before compression.

    Raises :class:`CorruptMessage` for data that is not one whole stream of the codec,
    :class:`UnsupportedCompression` for an id that names no codec, and :class:`MessageTooLarge` past the
    limit: on that code Java's producer splits its batch and sends the halves, which is the cure.
    """
    match codec_id:
        case Codec.NONE:
            if len(data) > limit_bytes:
                raise _too_large(limit_bytes)
            return data
        case Codec.GZIP:
            return _decode_frames(_GzipMember, data, limit_bytes, several=True)
        case Codec.SNAPPY:
            return decompress_snappy(data, limit_bytes)
        case Codec.LZ4:
            # Java reads the first frame and nothing after it: a second one would exist for some readers only.
            return _decode_frames(lz4.frame.LZ4FrameDecompressor, data, limit_bytes, several=False)
        case Codec.ZSTD:
            return _decode_frames(zstd.ZstdDecompressor, data, limit_bytes, several=True, bound=_bound_zstd)
    raise UnsupportedCompression(f"no codec has id {codec_id}")


def decompress_in_pieces(codec_id: int, data: Buffer) -> Iterator[Buffer]:
    """The same without a limit, a small piece at a time, for whoever does not keep them.

    Two things are no smaller than the data makes them: a snappy block, at most 22 times what it is stored in, which
    librdkafka makes of a whole batch; and the window that a zstd frame needs, at most 128 MiB.
    """
    view = memoryview(data)
    match codec_id:
        case Codec.NONE:
            yield view
        case Codec.GZIP:
            yield from (piece for _, piece in _pieces(_GzipMember, view, several=True))
        case Codec.SNAPPY:
            yield from decompress_snappy_blocks(view)
        case Codec.LZ4:
            yield from (piece for _, piece in _pieces(lz4.frame.LZ4FrameDecompressor, view, several=False))
        case Codec.ZSTD:
            yield from (piece for _, piece in _pieces(zstd.ZstdDecompressor, view, several=True))
        case _:
            raise UnsupportedCompression(f"no codec has id {codec_id}")


def has_linked_lz4_blocks(data: Buffer) -> bool:
    """Whether an lz4 frame's blocks refer to earlier ones: readable here, refused by every Java reader."""
    return len(data) > _LZ4_FLAGS_AT and not data[_LZ4_FLAGS_AT] & _LZ4_INDEPENDENT_BLOCKS_BIT


class _Frame(Protocol):
    """Decodes one frame bit by bit; the shape that lz4 and zstd share."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes | None: ...

    def decompress(self, data: Buffer, max_length: int) -> bytes: ...


class _GzipMember:
    """zlib's decompressor in the shape of the other two."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(_GZIP_WBITS)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    def decompress(self, data: Buffer, max_length: int) -> bytes:
        chunk = self._inflate.decompress(self._inflate.unconsumed_tail or data, max_length)
        # zlib can hold back output after it has taken all input.
        self.needs_input = not self._inflate.unconsumed_tail and len(chunk) < max_length
        return chunk


def _bound_zstd(frame: memoryview, limit_bytes: int) -> int:
    """How far a zstd frame may fill the output so that the limit holds for all memory together.

    While decoding, zstd keeps a window of its own output, of up to 128 MiB as the frame's header says. Where
    it is larger than levels up to 19 make it, output and window share the limit.
    """
    if _zstd_window_bytes(frame) <= _ZSTD_CHEAP_WINDOW_BYTES:
        return limit_bytes
    return min(limit_bytes, (limit_bytes + _ZSTD_CHEAP_WINDOW_BYTES) // 2)


def _zstd_window_bytes(frame: memoryview) -> int:
    """What a frame's header claims (RFC 8878 §3.1.1.1); 0 where there is no such header."""
    if len(frame) < 6 or frame[:4] != _ZSTD_MAGIC:
        return 0
    if frame[4] & _ZSTD_SINGLE_SEGMENT_BIT:
        try:
            return zstd.get_frame_info(frame).decompressed_size or 0
        except zstd.ZstdError:
            return 0
    exponent, mantissa = frame[5] >> 3, frame[5] & 7
    return (8 + mantissa) << (7 + exponent)


def _whole_limit(_frame: memoryview, limit_bytes: int) -> int:
    return limit_bytes


def _decode_frames(
    new_frame: Callable[[], _Frame],
    data: Buffer,
    limit_bytes: int,
    *,
    several: bool,
    bound: Callable[[memoryview, int], int] = _whole_limit,
) -> bytearray:
    view = memoryview(data)
    out = bytearray()
    frame_at, bound_bytes = -1, limit_bytes
    for position, piece in _pieces(new_frame, view, several=several):
        if position != frame_at:
            frame_at, bound_bytes = position, bound(view[position:], limit_bytes)
        if len(out) + len(piece) > bound_bytes:
            raise _too_large(limit_bytes)
        out += piece
    return out


def _pieces(new_frame: Callable[[], _Frame], view: memoryview, *, several: bool) -> Iterator[tuple[int, bytes]]:
    """What one frame holds, or where ``several`` are one stream to Java all of them, and nothing else.

    With each piece, where its frame begins.
    """
    begin = 0
    try:
        for _ in range(_MOST_FRAMES if several else 1):
            frame, position = new_frame(), begin
            while not frame.eof:
                fed = view[position : position + _PIECE_BYTES] if frame.needs_input else view[:0]
                position += len(fed)
                piece = frame.decompress(fed, _PIECE_BYTES)
                if piece:
                    yield begin, piece
                elif not frame.eof and position == len(view):
                    raise CorruptMessage("the compressed records are cut off")
            begin = position - len(frame.unused_data or b"")
            if begin == len(view):
                return
        raise CorruptMessage(f"{len(view) - begin} bytes follow the compressed records")
    except (zlib.error, zstd.ZstdError, RuntimeError) as error:
        raise CorruptMessage(f"the compressed records cannot be decoded: {error}") from None


def _too_large(limit_bytes: int) -> MessageTooLarge:
    return MessageTooLarge(f"the records of a batch take more than {limit_bytes} bytes when decompressed")
