"""CRC-32C in compiled code: by the processor's instruction, or by tables where it has none."""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from lamina.records.columns.memory import CRC_INSTRUCTION, Number, crc_word, i64, load8, load64, u64

_POLYNOMIAL = 0x82F63B78


def _tables() -> npt.NDArray[np.uint64]:
    """What a byte does to the register, and what it does with one to seven more bytes after it."""
    tables = np.zeros((8, 256), np.uint64)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        tables[0, byte] = crc
    for byte in range(256):
        for distance in range(1, 8):
            before = int(tables[distance - 1, byte])
            tables[distance, byte] = before >> 8 ^ int(tables[0, before & 0xFF])
    return tables


_TABLES = _tables()


@njit(forceinline=True)
def crc_word_by_tables(crc: Number, word: Number) -> Number:
    mixed = word ^ crc
    found = u64(0)
    for byte in range(8):
        found ^= _TABLES[7 - byte, (mixed >> u64(8 * byte)) & u64(0xFF)]
    return int(found)


_crc_word: Any = crc_word if CRC_INSTRUCTION else crc_word_by_tables


@njit(forceinline=True)
def checksum(start: Number, end: Number) -> Number:
    """The CRC-32C of the bytes between two addresses."""
    crc = u64(0xFFFFFFFF)
    while start + 8 <= end:
        crc = _crc_word(crc, load64(start))
        start += 8
    while start < end:
        byte = (crc ^ u64(load8(start))) & u64(0xFF)
        crc = (crc >> u64(8)) ^ _TABLES[0, byte]
        start += 1
    return i64(crc ^ u64(0xFFFFFFFF))
