"""The integers of batches and records in compiled code: big-endian fields and zigzag varints.

``data`` is an address, ``position`` and ``end`` count from there. A varint is read behind its own bounds check: the
records of a batch whose CRC is right may still lie.
"""

from typing import Any

import numpy as np
from numba import njit

from lamina.records.columns.memory import Number, i64, load8, load32, load64, store8, store32, store64, u8, u32, u64

BAD = -1
"""In place of a position: what should be there is not."""

_INT32_BYTES, _INT32_LAST = 5, 0x0F
_INT64_BYTES, _INT64_LAST = 10, 0x01


@njit(forceinline=True)
def _swap64(x: Number) -> Number:
    x = ((x & u64(0x00FF00FF00FF00FF)) << u64(8)) | ((x >> u64(8)) & u64(0x00FF00FF00FF00FF))
    x = ((x & u64(0x0000FFFF0000FFFF)) << u64(16)) | ((x >> u64(16)) & u64(0x0000FFFF0000FFFF))
    return (x << u64(32)) | (x >> u64(32))


@njit(forceinline=True)
def get_int64(data: Number, at: Number) -> Number:
    return int(i64(_swap64(load64(data + at))))


@njit(forceinline=True)
def get_int32(data: Number, at: Number) -> Number:
    return int(i64(np.int32(u32(_swap64(u64(load32(data + at))) >> u64(32)))))


@njit(forceinline=True)
def get_int16(data: Number, at: Number) -> Number:
    return int(i64(np.int16((np.uint16(load8(data + at)) << np.uint16(8)) | np.uint16(load8(data + at + 1)))))


@njit(forceinline=True)
def put_int64(data: Number, at: Number, value: Number) -> None:
    store64(data + at, _swap64(u64(value)))


@njit(forceinline=True)
def put_int32(data: Number, at: Number, value: Number) -> None:
    store32(data + at, u32(_swap64(u64(value) & u64(0xFFFFFFFF)) >> u64(32)))


@njit(forceinline=True)
def put_int16(data: Number, at: Number, value: Number) -> None:
    store8(data + at, u8((value >> 8) & 0xFF))
    store8(data + at + 1, u8(value & 0xFF))


@njit()
def _read_number(data: Number, position: Number, end: Number, most_bytes: Number, largest_last: Number) -> Any:
    """A number of any length, for the few that are longer than two bytes."""
    zigzag = u64(0)
    shift = u64(0)
    last = position + most_bytes - 1
    while 0 <= position < end:
        byte = u64(load8(data + position))
        zigzag |= (byte & u64(0x7F)) << shift
        if byte < 0x80:
            if position == last and byte > largest_last:
                break
            return int(i64(zigzag >> u64(1)) ^ -i64(zigzag & u64(1))), position + 1
        if position == last:
            break
        position += 1
        shift += u64(7)
    return 0, BAD


@njit(forceinline=True)
def _read(data: Number, position: Number, end: Number, most_bytes: Number, largest_last: Number) -> Any:
    if 0 <= position < end - 1:
        first = i64(load8(data + position))
        if first < 0x80:
            return (first >> 1) ^ -(first & 1), position + 1
        second = i64(load8(data + position + 1))
        if second < 0x80:
            zigzag = (first & 0x7F) | (second << 7)
            return (zigzag >> 1) ^ -(zigzag & 1), position + 2
    return _read_number(data, position, end, most_bytes, largest_last)


@njit(forceinline=True)
def read_varint(data: Number, position: Number, end: Number) -> Any:
    """A 32-bit number that ends at or before ``end``, and the position after it or BAD."""
    return _read(data, position, end, _INT32_BYTES, _INT32_LAST)


@njit(forceinline=True)
def read_varlong(data: Number, position: Number, end: Number) -> Any:
    return _read(data, position, end, _INT64_BYTES, _INT64_LAST)


@njit(forceinline=True)
def varint_bytes(value: Number) -> Number:
    zigzag = (u64(value) << u64(1)) ^ u64(value >> 63)
    size = 1
    while zigzag > u64(0x7F):
        zigzag >>= u64(7)
        size += 1
    return size


@njit(forceinline=True)
def put_varint(data: Number, at: Number, value: Number) -> Number:
    """Write the shortest form, which takes :func:`varint_bytes`; the position after it."""
    zigzag = (u64(value) << u64(1)) ^ u64(value >> 63)
    while zigzag > u64(0x7F):
        store8(data + at, u8((zigzag & u64(0x7F)) | u64(0x80)))
        zigzag >>= u64(7)
        at += 1
    store8(data + at, u8(zigzag))
    return at + 1


@njit(forceinline=True)
def _skip_field(data: Number, position: Number, end: Number) -> tuple[Number, Number]:
    """The length of a key or value, −1 being null, and the position where its bytes begin, or BAD."""
    length, position = read_varint(data, position, end)
    if position == BAD or length < -1 or length > end - position:
        return length, BAD
    return length, position


@njit(forceinline=True)
def _skip_headers(data: Number, position: Number, end: Number) -> Number:
    count, position = read_varint(data, position, end)
    if position == BAD or count < 0:
        return BAD
    for _ in range(count):
        length, position = _skip_field(data, position, end)
        if position == BAD or length < 0:
            return BAD
        length, position = _skip_field(data, position + length, end)
        if position == BAD:
            return BAD
        position += max(length, 0)
    return position


@njit(forceinline=True)
def read_record(
    data: Number, position: Number, limit: Number
) -> tuple[Number, Number, Number, Number, Number, Number, Number, Number]:
    """A record that ends at or before ``limit``.

    Its end or BAD, where its timestamp delta ends, that delta, the offset delta, where the key's bytes begin, the
    key's length, where the value's bytes begin, the value's length.
    """
    length, position = read_varint(data, position, limit)
    if position == BAD or length < 0 or length > limit - position:
        return BAD, 0, 0, 0, 0, 0, 0, 0
    end = position + length
    timestamp_delta, stamp_end = read_varlong(data, position + 1, end)  # past the attributes, which mean nothing
    offset_delta, position = read_varint(data, stamp_end, end)
    key_length, key_at = _skip_field(data, position, end)
    if key_at == BAD:
        return BAD, 0, 0, 0, 0, 0, 0, 0
    value_length, value_at = _skip_field(data, key_at + max(key_length, 0), end)
    if value_at == BAD:
        return BAD, 0, 0, 0, 0, 0, 0, 0
    if _skip_headers(data, value_at + max(value_length, 0), end) != end:
        return BAD, 0, 0, 0, 0, 0, 0, 0
    return end, stamp_end, timestamp_delta, offset_delta, key_at, key_length, value_at, value_length
