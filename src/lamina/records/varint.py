"""Zigzag varints: the integers inside a record, small magnitudes in few bytes.

Owns their two widths, 32 and 64 bits. An encoding that does not fit its width is refused, not truncated as in
Java, so that no two readers take the same bytes for different numbers. Must not know records.
"""

from lamina.errors import CorruptMessage
from lamina.records.batch import Buffer

_INT32_BYTES, _INT32_MASK = 5, 2**32 - 1
_INT64_BYTES, _INT64_MASK = 10, 2**64 - 1


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """The 32-bit number at ``position`` and the position after it."""
    try:
        byte = buffer[position]
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), position + 1
        second = buffer[position + 1]
        if second < 0x80:  # lengths from 64 to 8191: most records and values
            zigzag = byte & 0x7F | second << 7
            return (zigzag >> 1) ^ -(zigzag & 1), position + 2
        return _read_long_form(buffer, position, _INT32_BYTES, _INT32_MASK)
    except IndexError:
        raise CorruptMessage("the records end inside a number") from None


def read_varlong(buffer: Buffer, position: int) -> tuple[int, int]:
    """The 64-bit number at ``position`` and the position after it."""
    try:
        byte = buffer[position]
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), position + 1
        return _read_long_form(buffer, position, _INT64_BYTES, _INT64_MASK)
    except IndexError:
        raise CorruptMessage("the records end inside a number") from None


def append_varint(out: bytearray, value: int) -> None:
    """Both widths: the shortest encoding of a number does not depend on its width."""
    zigzag = (value << 1) ^ (value >> 63)
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)


def _read_long_form(buffer: Buffer, position: int, most_bytes: int, mask: int) -> tuple[int, int]:
    zigzag = 0
    for index in range(most_bytes):
        byte = buffer[position + index]
        zigzag |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if zigzag > mask:
                break
            return (zigzag >> 1) ^ -(zigzag & 1), position + index + 1
    raise CorruptMessage(f"a number in the records does not fit {mask.bit_length()} bits")
