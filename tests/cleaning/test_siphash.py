"""The hash of keys against a plain reference."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from lamina.cleaning.kernels.siphash import siphash
from lamina.records.columns.memory import Bytes, Number, address_of

MASK = 2**64 - 1


@njit()
def native_siphash(data: Bytes, k0: Number, k1: Number) -> tuple[int, int]:
    first, second = siphash(address_of(data), len(data), k0, k1, True)
    return first, second


def plain_siphash(data: bytes, k0: Number, k1: Number) -> tuple[int, int]:
    """SipHash-1-3-128, as its authors describe it."""
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D ^ 0xEE, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rotate(x: int, bits: int) -> int:
        return (x << bits | x >> (64 - bits)) & MASK

    def mix() -> None:
        v[0] = (v[0] + v[1]) & MASK
        v[2] = (v[2] + v[3]) & MASK
        v[1], v[3] = rotate(v[1], 13) ^ v[0], rotate(v[3], 16) ^ v[2]
        v[0] = rotate(v[0], 32)
        v[2] = (v[2] + v[1]) & MASK
        v[0] = (v[0] + v[3]) & MASK
        v[1], v[3] = rotate(v[1], 17) ^ v[2], rotate(v[3], 21) ^ v[0]
        v[2] = rotate(v[2], 32)

    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xFF])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        v[3] ^= word
        mix()
        v[0] ^= word
    v[2] ^= 0xEE
    for _ in range(3):
        mix()
    first = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    for _ in range(3):
        mix()
    return first, v[0] ^ v[1] ^ v[2] ^ v[3]


def array(data: bytes) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    return np.frombuffer(bytearray(data), np.uint8)


@given(st.binary(max_size=40), st.integers(0, MASK), st.integers(0, MASK))
def test_keys_are_hashed_by_siphash_1_3(data: bytes, k0: int, k1: int) -> None:
    assert native_siphash(array(data), np.uint64(k0), np.uint64(k1)) == plain_siphash(data, k0, k1)
