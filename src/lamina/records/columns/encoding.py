"""Columns into the records of batches, in compiled code: the way back of ``filling``.

Columns are given by the addresses of their buffers, as Arrow lays them out, 0 for a column or a validity bitmap that is
not there. Which rows go to which partition is worked out first, then the rows of one partition are written batch by
batch, into a buffer that the caller has made as large as the limit; a record that is larger than all of it is reported
before a byte is written. The columns are the caller's, and taken at their word.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from numba import njit

from lamina.records.columns.memory import Bytes, Number, address_of, copy_bytes, i64, load8, load32, store8, u8
from lamina.records.columns.numbers import put_varint, varint_bytes
from lamina.records.columns.sources import STAMP

Rows = npt.NDArray[np.int32]
Addresses = npt.NDArray[np.int64]

(
    KEY_ENDS,
    KEY_BITS,
    KEYS,
    VALUE_ENDS,
    VALUE_BITS,
    VALUES,
    LIST_ENDS,
    LIST_BITS,
    HEADER_KEY_ENDS,
    HEADER_KEYS,
    HEADER_VALUE_ENDS,
    HEADER_VALUE_BITS,
    HEADER_VALUES,
    PARTITIONS,
    PARTITION_BITS,
    BUFFERS,
) = range(16)

STICKY_PARTITION, STICKY_BYTES, STICKY_COLUMNS = range(3)
"""Where rows without a key go now, and how many bytes went there: after a batch's worth it is the next partition."""

_NULL = -1
_MURMUR_SEED, _MURMUR_MULTIPLIER = 0x9747B28C, 0x5BD1E995
_RECORD_OVERHEAD_BYTES = 8
_FIXED_BYTES = 2
"""Of a record, before its offset: attributes, and a timestamp that is the batch's."""

_ASSIGN_SIGNATURE = "int64(Array(int64, 1, 'C'), int64, int64, Array(int64, 1, 'C'), Array(int32, 1, 'C'))"
_ENCODE_SIGNATURE = "UniTuple(int64, 2)(Array(int64, 1, 'C'), Array(int32, 1, 'C'), int64, Array(uint8, 1, 'C'), int64)"
Assign = Callable[[Addresses, int, int, Addresses, Rows], int]
Encode = Callable[[Addresses, Rows, int, Bytes, int], tuple[int, int]]


@njit(forceinline=True)
def _is_null(bits: Number, row: Number) -> bool:
    return bool(bits != 0 and (load8(bits + (row >> 3)) >> u8(row & 7)) & u8(1) == u8(0))


@njit(forceinline=True)
def _end(ends: Number, row: Number) -> Number:
    return i64(load32(ends + 4 * row))


@njit(forceinline=True)
def _length(ends: Number, bits: Number, row: Number) -> Number:
    if ends == 0 or _is_null(bits, row):
        return i64(_NULL)
    return _end(ends, row + 1) - _end(ends, row)


@njit(forceinline=True)
def murmur2(data: Number, size: Number) -> Number:
    """As Java's default partitioner has it."""
    multiplier, low = np.uint64(_MURMUR_MULTIPLIER), np.uint64(0xFFFFFFFF)
    found = np.uint64(_MURMUR_SEED) ^ np.uint64(size)
    words = size >> 2
    for number in range(words):
        word = np.uint64(load32(data + 4 * number))
        word = (word * multiplier) & low
        word ^= word >> np.uint64(24)
        word = (word * multiplier) & low
        found = ((found * multiplier) & low) ^ word
    rest = data + 4 * words
    left = size & 3
    if left >= 3:
        found ^= np.uint64(load8(rest + 2)) << np.uint64(16)
    if left >= 2:
        found ^= np.uint64(load8(rest + 1)) << np.uint64(8)
    if left >= 1:
        found ^= np.uint64(load8(rest))
        found = (found * multiplier) & low
    found ^= found >> np.uint64(13)
    found = (found * multiplier) & low
    found ^= found >> np.uint64(15)
    return i64(found)


@njit(forceinline=True)
def _headers_bytes(buffers: Addresses, row: Number) -> Number:
    """With their count."""
    ends = buffers[LIST_ENDS]
    if ends == 0 or _is_null(buffers[LIST_BITS], row):
        return i64(1)
    first, last = _end(ends, row), _end(ends, row + 1)
    size = varint_bytes(last - first)
    for header in range(first, last):
        key = _length(buffers[HEADER_KEY_ENDS], i64(0), header)
        value = _length(buffers[HEADER_VALUE_ENDS], buffers[HEADER_VALUE_BITS], header)
        size += varint_bytes(key) + key + varint_bytes(value) + max(value, 0)
    return i64(size)


@njit(forceinline=True)
def _put_field(target: Number, at: Number, data: Number, start: Number, size: Number) -> Number:
    at = put_varint(target, at, size)
    if size > 0:
        copy_bytes(target + at, data + start, size)
        at += size
    return at


@njit(forceinline=True)
def _put_column(target: Number, at: Number, ends: Number, data: Number, row: Number, size: Number) -> Number:
    start = i64(0) if size <= 0 else _end(ends, row)
    return _put_field(target, at, data, start, size)


@njit(forceinline=True)
def _put_headers(buffers: Addresses, row: Number, target: Number, at: Number) -> Number:
    ends = buffers[LIST_ENDS]
    if ends == 0 or _is_null(buffers[LIST_BITS], row):
        return put_varint(target, at, i64(0))
    first, last = _end(ends, row), _end(ends, row + 1)
    at = put_varint(target, at, last - first)
    for header in range(first, last):
        size = _length(buffers[HEADER_KEY_ENDS], i64(0), header)
        at = _put_column(target, at, buffers[HEADER_KEY_ENDS], buffers[HEADER_KEYS], header, size)
        size = _length(buffers[HEADER_VALUE_ENDS], buffers[HEADER_VALUE_BITS], header)
        at = _put_column(target, at, buffers[HEADER_VALUE_ENDS], buffers[HEADER_VALUES], header, size)
    return at


def _compile_assign(stamp: int) -> Assign:
    @njit(_ASSIGN_SIGNATURE, cache=True, nogil=True)
    def assign_partitions(
        buffers: Addresses, partitions: int, batch_bytes: int, sticky: Addresses, assigned: Rows
    ) -> int:
        """The partition of every row: the one that is given, else that of the key, else the sticky one.

        The first row whose given partition does not exist, or -1.
        """
        given, given_bits = buffers[PARTITIONS], buffers[PARTITION_BITS]
        keys, key_ends, key_bits = buffers[KEYS], buffers[KEY_ENDS], buffers[KEY_BITS]
        value_ends, value_bits = buffers[VALUE_ENDS], buffers[VALUE_BITS]
        for row in range(len(assigned) if stamp else 0):
            if given != 0 and not _is_null(given_bits, row):
                wanted = i64(np.int32(load32(given + 4 * row)))
                if wanted < 0 or wanted >= partitions:
                    return int(row)
                assigned[row] = wanted
                continue
            key_length = _length(key_ends, key_bits, row)
            if key_length >= 0:
                start = _end(key_ends, row)
                assigned[row] = (murmur2(keys + start, key_length) & 0x7FFFFFFF) % partitions
                continue
            used = sticky[STICKY_BYTES] + max(_length(value_ends, value_bits, row), 0) + _RECORD_OVERHEAD_BYTES
            if used > batch_bytes and sticky[STICKY_BYTES] != 0:
                sticky[STICKY_PARTITION] = (sticky[STICKY_PARTITION] + 1) % partitions
                used -= sticky[STICKY_BYTES]
            sticky[STICKY_BYTES] = used
            assigned[row] = sticky[STICKY_PARTITION]
        return -1

    compiled: Assign = assign_partitions
    return compiled


def _compile_encode(stamp: int) -> Encode:
    @njit(_ENCODE_SIGNATURE, cache=True, nogil=True)
    def encode_rows(buffers: Addresses, order: Rows, first: int, out: Bytes, most_bytes: int) -> tuple[int, int]:
        """The records of ``order[first:]`` that fit in ``most_bytes``, at least one: the next row, and the bytes.

        Where the first one alone does not fit in ``out``, that one, and the bytes that it takes.
        """
        target, capacity = address_of(out), len(out)
        key_ends, key_bits, keys = buffers[KEY_ENDS], buffers[KEY_BITS], buffers[KEYS]
        value_ends, value_bits, values = buffers[VALUE_ENDS], buffers[VALUE_BITS], buffers[VALUES]
        at = i64(0)
        index = i64(first)
        count = i64(len(order) if stamp else 0)
        while index < count:
            row = i64(order[index])
            key, value = _length(key_ends, key_bits, row), _length(value_ends, value_bits, row)
            delta = index - first
            body = _FIXED_BYTES + varint_bytes(delta) + varint_bytes(key) + max(key, 0)
            body += varint_bytes(value) + max(value, 0) + _headers_bytes(buffers, row)
            needed = varint_bytes(body) + body
            if at + needed > most_bytes and index > first:
                break
            if at + needed > capacity:
                if index > first:
                    break
                return int(index), int(needed)
            at = put_varint(target, at, body)
            store8(target + at, u8(0))
            store8(target + at + 1, u8(0))
            at = put_varint(target, at + _FIXED_BYTES, delta)
            at = _put_column(target, at, key_ends, keys, row, key)
            at = _put_column(target, at, value_ends, values, row, value)
            at = _put_headers(buffers, row, target, at)
            index += 1
        return int(index), int(at)

    compiled: Encode = encode_rows
    return compiled


assign_partitions = _compile_assign(STAMP)
encode_rows = _compile_encode(STAMP)
