"""The protocol's primitive pieces: unsigned varints, strings, tag sections, and what is wrong with a message.

Owns `MalformedRequest`, the one error that leaves this room for bytes that cannot be read, and the limits
that keep a small lie from costing much. Must not know any message.
"""

from struct import Struct
from struct import error as StructError  # noqa: N812 - an exception, named like one
from typing import Final

Buffer = bytes | bytearray | memoryview

MAX_ELEMENTS: Final = 200_000
"""Array elements and tagged fields in one message. A two-byte element becomes a fifty-byte object, so
without a limit a full-sized frame of them would hold the loop for a minute and take gigabytes."""

MAX_STRING_BYTES: Final = 2**15 - 1
"""As Kafka has it, also where a varint could announce more: what is stored of a string has two bytes for its length."""

_MAX_VARINT_BYTES: Final = 5

_unpack_int16 = Struct(">h").unpack_from
_pack_int16 = Struct(">h").pack
_NULL_STRING = _pack_int16(-1)


class MalformedRequest(Exception):
    """The bytes are not the message that they are said to be. The connection cannot go on."""


UNREADABLE: Final = (MalformedRequest, StructError, IndexError, ValueError, OverflowError)
"""What reading a lie raises: the readers lean on Python's own bounds checks and say so once, at the top."""


def malformed(message: str, error: Exception) -> MalformedRequest:
    """One of `UNREADABLE` as the error that leaves this room; `message` names what was being read."""
    if isinstance(error, MalformedRequest):
        return MalformedRequest(f"{message}: {error}")
    if isinstance(error, (StructError, IndexError)):
        return MalformedRequest(f"{message}: it ends before its last field.")
    if isinstance(error, UnicodeDecodeError):
        return MalformedRequest(f"{message}: a string is not UTF-8.")
    return MalformedRequest(f"{message}: a field holds a value that its type cannot take.")


def read_uvarint(data: Buffer, at: int) -> tuple[int, int]:
    """(value, where the next field starts). Raises `IndexError` at the end of the data."""
    byte = data[at]
    at += 1
    if byte < 0x80:
        return byte, at
    value = byte & 0x7F
    shift = 7
    while byte > 0x7F:
        if shift == 7 * _MAX_VARINT_BYTES:
            raise MalformedRequest("a variable-length integer takes more than five bytes.")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
    return value, at


def write_uvarint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def read_string(data: Buffer, at: int) -> tuple[str | None, int]:
    """A nullable string with a two-byte length."""
    (size,) = _unpack_int16(data, at)
    at += 2
    if size < 0:
        if size != -1:
            raise MalformedRequest(f"a string has length {size}.")
        return None, at
    end = at + size
    if end > len(data):
        raise IndexError
    return str(data[at:end], "utf-8"), end


def read_compact_string(data: Buffer, at: int) -> tuple[str | None, int]:
    """A nullable string with a varint length."""
    size = data[at]
    if size < 0x80:
        at += 1
    else:
        size, at = read_uvarint(data, at)
        if size > MAX_STRING_BYTES + 1:
            raise too_long()
    if size == 0:
        return None, at
    end = at + size - 1
    if end > len(data):
        raise IndexError
    return str(data[at:end], "utf-8"), end


def present(value: str | None) -> str:
    """For strings that may not be null."""
    if value is None:
        raise MalformedRequest("a string that must be there is null.")
    return value


def spend(count: int, budget: list[int]) -> int:
    """The number of elements to read: charged to what is left of `MAX_ELEMENTS` for this message."""
    if count < 0:
        raise MalformedRequest("an array that must be there is null.")
    budget[0] -= count
    if budget[0] < 0:
        raise too_many_elements()
    return count


def too_many_elements() -> MalformedRequest:
    return MalformedRequest("more elements are announced than there may be.")


def too_long() -> MalformedRequest:
    return MalformedRequest(f"a string takes more than {MAX_STRING_BYTES} bytes.")


def write_string(out: bytearray, value: str | None) -> None:
    if value is None:
        out += _NULL_STRING
        return
    encoded = value.encode()
    out += _pack_int16(len(encoded))
    out += encoded


def write_compact_string(out: bytearray, value: str | None) -> None:
    if value is None:
        out.append(0)
        return
    encoded = value.encode()
    write_uvarint(out, len(encoded) + 1)
    out += encoded


def read_tags(data: Buffer, at: int, budget: list[int]) -> tuple[dict[int, bytes], int]:
    """A whole tag section: (tag → its bytes, where the next field starts). Unknown tags are fine."""
    count, at = read_uvarint(data, at)
    tags: dict[int, bytes] = {}
    for _ in range(spend(count, budget)):
        tag, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at)
        end = at + size
        if end > len(data):
            raise IndexError
        tags[tag] = bytes(data[at:end])
        at = end
    return tags, at


def skip_tags(data: Buffer, at: int, budget: list[int]) -> int:
    """Where the next field starts, behind a tag section of which nothing is wanted."""
    count, at = read_uvarint(data, at)
    for _ in range(spend(count, budget)):
        _, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at)
        at += size
    return at
