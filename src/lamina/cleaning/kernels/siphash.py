"""SipHash-1-3 with 128 bits: how the keys of records are told apart.

A keyed hash: who does not know the key of the plan cannot prepare two keys that collide.
"""

from numba import njit

from lamina.records.columns.memory import Number, load8, load64, u64


@njit(forceinline=True)
def _rotate(x: Number, bits: Number) -> Number:
    return (x << u64(bits)) | (x >> u64(64 - bits))


@njit(forceinline=True)
def _round(v0: Number, v1: Number, v2: Number, v3: Number) -> tuple[Number, Number, Number, Number]:
    v0 += v1
    v1 = _rotate(v1, 13) ^ v0
    v0 = _rotate(v0, 32)
    v2 += v3
    v3 = _rotate(v3, 16) ^ v2
    v0 += v3
    v3 = _rotate(v3, 21) ^ v0
    v2 += v1
    v1 = _rotate(v1, 17) ^ v2
    v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


@njit(forceinline=True)
def siphash(start: Number, size: Number, k0: Number, k1: Number, wants_second: bool) -> tuple[Number, Number]:
    """Both halves for ``size`` bytes at an address; the second, if not wanted, is 0."""
    v0 = k0 ^ u64(0x736F6D6570736575)
    v1 = k1 ^ u64(0x646F72616E646F6D ^ 0xEE)
    v2 = k0 ^ u64(0x6C7967656E657261)
    v3 = k1 ^ u64(0x7465646279746573)
    done = 0
    while done + 8 <= size:
        word = load64(start + done)
        v3 ^= word
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 ^= word
        done += 8
    word = u64(size) << u64(56)
    if done < size:
        if size >= 8:
            word |= load64(start + size - 8) >> u64(8 * (8 - (size - done)))
        else:
            for at in range(size):
                word |= u64(load8(start + at)) << u64(8 * at)
    v3 ^= word
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0 ^= word
    v2 ^= u64(0xEE)
    for _ in range(3):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    first = v0 ^ v1 ^ v2 ^ v3
    if not wants_second:
        return first, u64(0)
    v1 ^= u64(0xDD)
    for _ in range(3):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return first, v0 ^ v1 ^ v2 ^ v3
