"""The small parts of compiled code against plain references."""

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from lamina.records.columns.checksum import checksum, crc_word_by_tables
from lamina.records.columns.memory import Bytes, address_of, copy_bytes, equal_bytes, load64
from lamina.records.columns.numbers import BAD, put_varint, read_varint, read_varlong, varint_bytes
from lamina.records.varint import append_varint


@njit()
def native_checksum(data: Bytes) -> int:
    start = address_of(data)
    return int(checksum(start, start + len(data)))


@njit()
def table_checksum(data: Bytes) -> int:
    start = address_of(data)
    crc = np.uint64(0xFFFFFFFF)
    for at in range(0, len(data), 8):
        crc = crc_word_by_tables(crc, load64(start + at))
    return int(crc ^ np.uint64(0xFFFFFFFF))


@njit()
def native_copy(target: Bytes, source: Bytes, size: int) -> None:
    copy_bytes(address_of(target), address_of(source), size)


@njit()
def are_equal(a: Bytes, b: Bytes, size: int) -> bool:
    return bool(equal_bytes(address_of(a), address_of(b), size))


@njit()
def native_varint(data: Bytes, is_long: bool) -> tuple[int, int]:
    if is_long:
        return read_varlong(address_of(data), 0, len(data))  # type: ignore[no-any-return]
    return read_varint(address_of(data), 0, len(data))  # type: ignore[no-any-return]


@njit()
def native_put(data: Bytes, value: int) -> int:
    if varint_bytes(value) > len(data):
        return -1
    return int(put_varint(address_of(data), 0, value))


def array(data: bytes) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    return np.frombuffer(bytearray(data), np.uint8)


@given(st.binary(max_size=100))
def test_the_checksum_is_crc32c(data: bytes) -> None:
    assert native_checksum(array(data)) == crc32c(data)


@given(st.binary(max_size=12).map(lambda data: data * 8))
def test_the_checksum_by_tables_is_crc32c_too(data: bytes) -> None:
    assert table_checksum(array(data)) == crc32c(data)


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_number_comes_back_as_it_was_written(value: int) -> None:
    out = np.zeros(10, np.uint8)
    size = native_put(out, value)
    plain = bytearray()
    append_varint(plain, value)
    assert out[:size].tobytes() == bytes(plain)
    assert native_varint(out, True) == (value, size)
    assert native_varint(out[:size].copy(), True) == (value, size)
    assert native_varint(out[: size - 1].copy(), True)[1] == BAD
    if -(2**31) <= value < 2**31:
        assert native_varint(out[:size].copy(), False) == (value, size)
    else:
        assert native_varint(out[:size].copy(), False)[1] == BAD


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 4, b"\xff" * 5 + b"\x00", b"\x80\x80\x80\x80\x10"])
def test_a_number_that_is_cut_off_or_too_wide_is_bad(data: bytes) -> None:
    assert native_varint(array(data), False)[1] == BAD


@pytest.mark.parametrize("size", [*range(40), 127, 128, 129, 1000])
def test_bytes_are_copied_and_compared_to_the_last_and_not_beyond(size: int) -> None:
    source = np.arange(1, size + 2, dtype=np.uint8)
    target = np.zeros(size + 1, np.uint8)
    native_copy(target, source, size)
    assert target.tolist() == [*source[:size].tolist(), 0]
    assert are_equal(target, source, size)
    for at in range(size):
        target[at] ^= 0x80
        assert not are_equal(target, source, size)
        target[at] ^= 0x80
