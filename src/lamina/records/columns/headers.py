"""Batch headers of a segment into columns, CRCs checked, in compiled code."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from numba import njit

from lamina.records.columns.checksum import checksum
from lamina.records.columns.layout import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    BASE_TIMESTAMP_AT,
    COVERED_AT,
    CRC_AT,
    HEADER_BYTES,
    LAST_OFFSET,
    LAST_OFFSET_DELTA_AT,
    LENGTH_AT,
    LOG_OVERHEAD_BYTES,
    MAGIC_AT,
    MAX_TIMESTAMP,
    MAX_TIMESTAMP_AT,
    PAYLOAD_END,
    PAYLOAD_START,
    POSITION,
    PRODUCER_EPOCH,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID,
    PRODUCER_ID_AT,
    RECORD_COUNT,
    RECORD_COUNT_AT,
    SIZE,
)
from lamina.records.columns.memory import Bytes, address_of
from lamina.records.columns.numbers import get_int16, get_int32, get_int64
from lamina.records.columns.sources import STAMP

Rows = npt.NDArray[np.int64]
Reading = Callable[[Bytes, int, int, bool, int, Rows], tuple[int, int, bool]]

_SIGNATURE = (
    "Tuple((int64, int64, boolean))(Array(uint8, 1, 'C', readonly=True), int64, int64, boolean, int64,"
    " Array(int64, 2, 'C'))"
)


def _compile(stamp: int) -> Reading:
    @njit(_SIGNATURE, cache=True, nogil=True)
    def read_headers(
        data: Bytes, position: int, next_offset: int, checks_crc: bool, most_bytes: int, rows: Rows
    ) -> tuple[int, int, bool]:
        """Headers from ``position`` on, until the rows are full, ``most_bytes`` are covered or the data ends.

        How many, the position after them, and whether a bad batch stands there. No batch may begin below
        ``next_offset``, the offset where the one before it ended.
        """
        count = 0
        begin = position
        address = address_of(data)
        size_of_data = len(data) if stamp else 0
        while position < size_of_data and count < len(rows) and (count == 0 or position - begin < most_bytes):
            if size_of_data - position < HEADER_BYTES:
                return count, position, True
            size = get_int32(address, position + LENGTH_AT) + LOG_OVERHEAD_BYTES
            base_offset = get_int64(address, position)
            delta = get_int32(address, position + LAST_OFFSET_DELTA_AT)
            records = get_int32(address, position + RECORD_COUNT_AT)
            if (
                data[position + MAGIC_AT] != 2
                or size < HEADER_BYTES
                or size > size_of_data - position
                or base_offset < next_offset
                or delta < 0
                or records < 0
            ):
                return count, position, True
            if checks_crc:
                claimed = get_int32(address, position + CRC_AT) & 0xFFFFFFFF
                if checksum(address + position + COVERED_AT, address + position + size) != claimed:
                    return count, position, True
            row = rows[count]
            row[POSITION] = position
            row[SIZE] = size
            row[BASE_OFFSET] = base_offset
            row[LAST_OFFSET] = base_offset + delta
            row[ATTRIBUTES] = get_int16(address, position + COVERED_AT)
            row[BASE_TIMESTAMP] = get_int64(address, position + BASE_TIMESTAMP_AT)
            row[MAX_TIMESTAMP] = get_int64(address, position + MAX_TIMESTAMP_AT)
            row[PRODUCER_ID] = get_int64(address, position + PRODUCER_ID_AT)
            row[PRODUCER_EPOCH] = get_int16(address, position + PRODUCER_EPOCH_AT)
            row[RECORD_COUNT] = records
            row[PAYLOAD_START] = position + HEADER_BYTES
            row[PAYLOAD_END] = position + size
            position += size
            next_offset = base_offset + delta + 1
            count += 1
        return count, position, False

    found: Reading = read_headers
    return found


read_headers = _compile(STAMP)
