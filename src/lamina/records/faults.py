"""What is wrong, in words, with a batch that compiled code refused: the plain reader looks at it again.

Must not know where the bytes come from.
"""

from lamina.errors import CorruptMessage
from lamina.records.batch import HEADER_BYTES, Buffer, check_crc, check_header, read_header
from lamina.records.record_walk import walk_records

_EARLIEST_MS, _LATEST_MS = -(2**63), 2**63 - 1


def is_cut_off(buffer: Buffer, position: int, next_offset: int) -> bool:
    """Whether all that is wrong with the batch at ``position`` is that the buffer ends before it does."""
    if len(buffer) - position < HEADER_BYTES:
        return True
    header = read_header(buffer, position)
    try:
        check_header(header)
    except CorruptMessage:
        return False
    return header.base_offset >= next_offset and header.size_bytes > len(buffer) - position


def describe_batch(buffer: Buffer, position: int, next_offset: int) -> str:
    """Why no batch that follows ``next_offset`` can be the one at ``position``."""
    left_bytes = len(buffer) - position
    if left_bytes < HEADER_BYTES:
        return f"the file ends after {left_bytes} bytes of a batch header"
    header = read_header(buffer, position)
    try:
        check_header(header)
        if header.size_bytes > left_bytes:
            return f"a batch of {header.size_bytes} bytes runs past the file's end"
        if header.base_offset < next_offset:
            return f"the batch begins at offset {header.base_offset}, below the {next_offset} that is due"
        check_crc(buffer, position, header)
    except CorruptMessage as error:
        return str(error)
    return "the batch changed while it was read"


def describe_records(records: Buffer, record_count: int, first: int = 0) -> str:
    """Why ``records`` is not what the header of a batch says, whose CRC is right; the first one has index ``first``."""
    try:
        walk_records(
            records,
            first + record_count,
            0,
            needs_keys=False,
            earliest_ms=_EARLIEST_MS,
            latest_ms=_LATEST_MS,
            first_index=first,
        )
    except CorruptMessage as error:
        return str(error)
    return "its records are not what the header counts"


def damage(name: str, position: int, offset: int, reason: str) -> str:
    """The one sentence that a person reads; ``offset`` is the first that the bad batch should hold."""
    return f"{name} is damaged at position {position}, offset {offset}: {reason}"
