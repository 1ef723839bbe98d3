"""Whether the records of a batch are what its header says.

The CRC proves that the bytes are the ones that were written, not that they were right. Must not know files.
"""

from collections.abc import Sequence

from lamina.records.batch import BatchHeader
from lamina.records.record import Record


def record_fault(header: BatchHeader, records: Sequence[Record]) -> str | None:
    """What the header says wrongly of its records, which were read and are as many as it counts."""
    if header.record_count > header.last_offset_delta + 1:
        return f"{header.record_count} records do not fit offsets up to {header.last_offset}"
    last_offset = header.base_offset - 1
    for record in records:
        if not last_offset < record.offset <= header.last_offset:
            return f"a record at offset {record.offset} follows {last_offset} in a batch up to {header.last_offset}"
        last_offset = record.offset
    if records:
        largest = max(record.timestamp for record in records)
        if largest != header.max_timestamp:
            return f"the largest timestamp is {largest}, the header says {header.max_timestamp}"
    return None
