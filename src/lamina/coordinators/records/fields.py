"""The fields of an internal record: fixed numbers, strings, bytes, arrays and tags, in Kafka's two dialects.

A flexible version counts lengths as varints and ends each structure with a tag section; the others use two bytes for
a string and four for the rest. Reads raise :class:`~lamina.errors.CorruptMessage` for bytes that are something else,
and never take more memory than the record has bytes. Must not know any record.
"""

from collections.abc import Callable
from struct import Struct, pack
from struct import error as StructError  # noqa: N812 - an exception, named like one
from typing import TypeVar

from lamina.errors import CorruptMessage
from lamina.wire.primitives import (
    MalformedRequest,
    read_compact_string,
    read_string,
    read_uvarint,
    write_compact_string,
    write_string,
    write_uvarint,
)

T = TypeVar("T")

UNREADABLE = (StructError, IndexError, UnicodeDecodeError, MalformedRequest)
"""What reading malformed bytes raises; ``corrupt`` makes CORRUPT_MESSAGE of it."""

_INT8, _INT16, _INT32, _INT64 = Struct(">b"), Struct(">h"), Struct(">i"), Struct(">q")
_UUID_BYTES = 16


def corrupt(what: str, error: Exception) -> CorruptMessage:
    reason = str(error) or "it ends before its last field"
    return CorruptMessage(f"{what} cannot be read: {reason}")


def open_value(data: bytes, latest: int, first_flexible: int) -> "tuple[int, Reader]":
    """The version that a value begins with, and a reader of what follows."""
    (version,) = _INT16.unpack_from(data)
    if not 0 <= version <= latest:
        raise CorruptMessage(f"a value has version {version}; versions up to {latest} are known")
    return version, Reader(data, _INT16.size, is_flexible=version >= first_flexible)


class Reader:
    """Reads fields one after the other."""

    __slots__ = ("_at", "_data", "_is_flexible")

    def __init__(self, data: bytes, at: int = 0, *, is_flexible: bool = False) -> None:
        self._data = data
        self._at = at
        self._is_flexible = is_flexible

    def _fixed(self, struct: Struct) -> int:
        (value,) = struct.unpack_from(self._data, self._at)
        self._at += struct.size
        return int(value)

    def int8(self) -> int:
        return self._fixed(_INT8)

    def int16(self) -> int:
        return self._fixed(_INT16)

    def int32(self) -> int:
        return self._fixed(_INT32)

    def int64(self) -> int:
        return self._fixed(_INT64)

    def uuid(self) -> bytes:
        return self._take(_UUID_BYTES)

    def nullable_string(self) -> str | None:
        value, self._at = (read_compact_string if self._is_flexible else read_string)(self._data, self._at)
        return value

    def string(self) -> str:
        value = self.nullable_string()
        if value is None:
            raise MalformedRequest("a string that must be there is null")
        return value

    def bytes_(self) -> bytes:
        return self._take(self._length())

    def nullable_bytes(self) -> bytes | None:
        """Of the dialect that is not flexible."""
        length = self.int32()
        return None if length < 0 else self._take(length)

    def array(self, read: Callable[[], T]) -> tuple[T, ...]:
        count = self._length()
        if count > len(self._data) - self._at:
            raise IndexError
        return tuple(read() for _ in range(count))

    def nullable_array(self, read: Callable[[], T]) -> tuple[T, ...] | None:
        count = self._nullable_length()
        if count > len(self._data) - self._at:
            raise IndexError
        return None if count < 0 else tuple(read() for _ in range(count))

    def tags(self) -> dict[int, bytes]:
        """The tag section; there is none in a version that is not flexible."""
        found: dict[int, bytes] = {}
        if self._is_flexible:
            for _ in range(self._uvarint()):
                tag = self._uvarint()
                found[tag] = self._take(self._uvarint())
        return found

    def _uvarint(self) -> int:
        value, self._at = read_uvarint(self._data, self._at)
        return value

    def _nullable_length(self) -> int:
        return self._uvarint() - 1 if self._is_flexible else self.int32()

    def _length(self) -> int:
        length = self._nullable_length()
        if length < 0:
            raise MalformedRequest(f"a field has length {length}")
        return length

    def _take(self, size_bytes: int) -> bytes:
        end = self._at + size_bytes
        if end > len(self._data):
            raise IndexError
        taken = self._data[self._at : end]
        self._at = end
        return taken


class Writer:
    """Writes fields one after the other."""

    __slots__ = ("_is_flexible", "out")

    def __init__(self, version: int | None = None, *, is_flexible: bool = False) -> None:
        self.out = bytearray() if version is None else bytearray(_INT16.pack(version))
        self._is_flexible = is_flexible

    def int8(self, value: int) -> None:
        self.out += _INT8.pack(value)

    def int16(self, value: int) -> None:
        self.out += _INT16.pack(value)

    def int32(self, value: int) -> None:
        self.out += _INT32.pack(value)

    def int64(self, value: int) -> None:
        self.out += _INT64.pack(value)

    def uuid(self, value: bytes) -> None:
        self.out += value

    def string(self, value: str | None) -> None:
        (write_compact_string if self._is_flexible else write_string)(self.out, value)

    def bytes_(self, value: bytes) -> None:
        self._length(len(value))
        self.out += value

    def nullable_bytes(self, value: bytes | None) -> None:
        """Of the dialect that is not flexible."""
        self.int32(-1 if value is None else len(value))
        self.out += value or b""

    def array(self, values: tuple[T, ...], write: Callable[[T], None]) -> None:
        self._length(len(values))
        for value in values:
            write(value)

    def int32s(self, values: tuple[int, ...]) -> None:
        """An array of them: there may be as many as a group has partitions."""
        self._length(len(values))
        self.out += pack(f">{len(values)}i", *values)

    def nullable_array(self, values: tuple[T, ...] | None, write: Callable[[T], None]) -> None:
        if values is None:
            self._length(-1)
        else:
            self.array(values, write)

    def tags(self, tags: dict[int, bytes] | None = None) -> None:
        if not self._is_flexible:
            return
        if not tags:
            self.out.append(0)
            return
        write_uvarint(self.out, len(tags))
        for tag in sorted(tags):
            write_uvarint(self.out, tag)
            write_uvarint(self.out, len(tags[tag]))
            self.out += tags[tag]

    def _length(self, length: int) -> None:
        if self._is_flexible:
            write_uvarint(self.out, length + 1)
        else:
            self.int32(length)
