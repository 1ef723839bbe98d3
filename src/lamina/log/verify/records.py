"""Whether the records of a batch are what its header says.

The CRC proves that the bytes are the ones that were written, not that they were right. Compiled code tells good batches
where it is worth loading; what is wrong with the others is worded here. Must not know files.
"""

import importlib
import importlib.util
from collections.abc import Callable, Sequence

from lamina.records.batch import BatchHeader, Buffer
from lamina.records.faults import offset_fault
from lamina.records.record import Record

Screen = Callable[[Buffer, BatchHeader, int], bool]
"""Whether the records of a whole batch are what its header says; may raise where they cannot be decompressed."""

WORTH_BYTES = 128 * 1024 * 1024
"""What takes plain Python a few seconds, and so longer than loading the compiled code."""

_COMPILED = "lamina.records.columns.checking"


def load_screen(total_bytes: int) -> Screen | None:
    """``None`` where there is too little to verify, or no numba, or no place for what it compiles."""
    if total_bytes < WORTH_BYTES or importlib.util.find_spec("numba") is None:
        return None
    try:
        screen: Screen = importlib.import_module(_COMPILED).are_as_told
    except (ImportError, RuntimeError):
        return None
    return screen


def record_fault(header: BatchHeader, records: Sequence[Record]) -> str | None:
    """What the header says wrongly of its records, which were read and are as many as it counts."""
    if header.record_count > header.last_offset_delta + 1:
        return f"{header.record_count} records do not fit offsets up to {header.last_offset}"
    before = header.base_offset - 1
    for record in records:
        fault = offset_fault(record.offset, before, header.base_offset, header.last_offset)
        if fault is not None:
            return fault
        before = record.offset
    if records:
        largest = max(record.timestamp for record in records)
        if largest != header.max_timestamp:
            return f"the largest timestamp is {largest}, the header says {header.max_timestamp}"
    return None
