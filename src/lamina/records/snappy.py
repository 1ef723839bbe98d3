"""Snappy in the two framings that Kafka's clients send: Java's stream of blocks, and librdkafka's bare block.

A block says in front how large it is decoded; these claims are added up before anything is allocated. Must
not know batches or records.
"""

from collections.abc import Iterator
from struct import Struct

import cramjam

from lamina.errors import CorruptMessage, MessageTooLarge
from lamina.records.batch import Buffer

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + Struct(">ii").pack(1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_XERIAL_LENGTH = Struct(">i")
_MOST_EXPANSION = 22
"""The densest element of a block is a copy of 64 bytes in 3."""


def compress_xerial(data: Buffer) -> bytearray:
    """Java's stream of raw blocks, which every client reads; librdkafka's bare block is not read by all."""
    view = memoryview(data)
    out = bytearray(_XERIAL_HEADER)
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES])
        out += _XERIAL_LENGTH.pack(len(block))
        out += memoryview(block)
    return out


def decompress_snappy(data: Buffer, limit_bytes: int) -> bytearray:
    view = memoryview(data)
    size_bytes = sum(map(_read_snappy_size, _snappy_blocks(view)))
    if size_bytes > limit_bytes:
        raise MessageTooLarge(f"the records of a batch decompress to {size_bytes} bytes, more than {limit_bytes}")
    out = bytearray(size_bytes)
    target = memoryview(out)
    for block in _snappy_blocks(view):
        part, target = target[: _read_snappy_size(block)], target[_read_snappy_size(block) :]
        _decode_into(block, part)
    return out


def decompress_snappy_blocks(view: memoryview) -> Iterator[bytearray]:
    """One after the other; a bare block is one. A claim that no block of its size can keep is not believed."""
    for block in _snappy_blocks(view):
        size_bytes = _read_snappy_size(block)
        if size_bytes > _MOST_EXPANSION * len(block):
            raise CorruptMessage(f"a snappy block of {len(block)} bytes claims to hold {size_bytes}")
        part = bytearray(size_bytes)
        _decode_into(block, memoryview(part))
        yield part


def _decode_into(block: memoryview, part: memoryview) -> None:
    try:
        cramjam.snappy.decompress_raw_into(block, part)
    except cramjam.DecompressionError as error:
        raise CorruptMessage(f"the compressed records cannot be decoded: {error}") from None


def _snappy_blocks(view: memoryview) -> Iterator[memoryview]:
    """The raw blocks of Java's stream; without the stream's header, all of ``view`` is one block."""
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        yield view
        return
    position = len(_XERIAL_HEADER)
    if position > len(view):
        raise CorruptMessage("the snappy stream ends inside its header")
    while position < len(view):
        start = position + _XERIAL_LENGTH.size
        if start > len(view):
            raise CorruptMessage("the snappy stream ends inside a block's length")
        (length,) = _XERIAL_LENGTH.unpack_from(view, position)
        position = start + length
        if length < 0 or position > len(view):
            raise CorruptMessage(f"a snappy block claims {length} bytes, {len(view) - start} are left")
        yield view[start:position]


def _read_snappy_size(block: memoryview) -> int:
    """A raw block begins with its decoded size, an unsigned varint of at most 32 bits."""
    size_bytes = 0
    for index, byte in enumerate(block[:5]):
        size_bytes |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return size_bytes
    raise CorruptMessage("a snappy block does not begin with its size")
