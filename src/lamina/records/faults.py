"""What is wrong, in words, with a batch that compiled code refused: the plain reader looks at it again.

Must not know where the bytes come from.
"""

from lamina.errors import CorruptMessage
from lamina.records.batch import HEADER_BYTES, Buffer, check_crc, check_header, read_header
from lamina.records.record_fields import parse_record


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


def describe_records(records: Buffer, record_count: int, base_offset: int, last_offset: int, first: int = 0) -> str:
    """Why ``records`` is not what the header of a batch says, whose CRC is right; the first one has index ``first``."""
    position, size, before = 0, len(records), base_offset - 1
    try:
        for index in range(first, first + record_count):
            position, _, delta, _, _, _, _ = parse_record(records, position, size, index)
            fault = offset_fault(base_offset + delta, before, base_offset, last_offset)
            if fault is not None:
                return fault
            before = base_offset + delta
    except CorruptMessage as error:
        return str(error)
    if position != size:
        return f"{size - position} bytes follow the last of {first + record_count} records"
    return "its records are not what the header counts"


def offset_fault(offset: int, before: int, base_offset: int, last_offset: int) -> str | None:
    """What is wrong with the offset of a record that follows one with the offset ``before`` in a batch."""
    if not base_offset <= offset <= last_offset:
        return f"a record at offset {offset} lies outside of its batch, {base_offset} to {last_offset}"
    if offset <= before:
        return f"a record at offset {offset} follows {before} in a batch up to {last_offset}"
    return None


def damage(name: str, position: int, offset: int, reason: str) -> str:
    """The one sentence that a person reads; ``offset`` is the first that the bad batch should hold."""
    return f"{name} is damaged at position {position}, offset {offset}: {reason}"
