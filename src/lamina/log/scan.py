"""Reading a log file from batch to batch in a fixed amount of memory: its headers only, or with every CRC checked.

What a segment, recovery, verification and the tools walk a file with. Must not change anything.
"""

from collections.abc import Iterator

from crc32c import crc32c

from lamina.errors import CorruptMessage
from lamina.log.files import File
from lamina.records.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, BatchHeader, check_header, read_header

_HEADERS_BYTES = 16 * 1024
_BUFFER_BYTES = 1024 * 1024
_COVERED_AT = 21


class BadBatch(CorruptMessage):
    """The first batch of a file that is not whole and right."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"at position {position}: {reason}")
        self.position = position
        self.reason = reason


def headers(file: File, start: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every batch in ``[start, end)``; bodies are not looked at.

    Raises :class:`CorruptMessage` at a header that no batch can have or a batch that runs past ``end``.
    """
    position, chunk, chunk_start = start, b"", start
    while position < end:
        at = position - chunk_start
        if at + HEADER_BYTES > len(chunk):
            chunk, chunk_start, at = file.pread(min(_HEADERS_BYTES, end - position), position), position, 0
            if len(chunk) < HEADER_BYTES:
                raise CorruptMessage(f"{file.path} ends inside the batch at position {position}")
        header = read_header(chunk, at)
        check_header(header)
        next_position = position + header.length + LOG_OVERHEAD_BYTES
        if next_position > end:
            raise CorruptMessage(f"{file.path} ends inside the batch at position {position}")
        yield position, header
        position = next_position


def checked_batches(
    file: File, start: int, end: int, buffer_bytes: int = _BUFFER_BYTES
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Position, header and bytes of every batch in ``[start, end)``; raises :class:`BadBatch` at the first bad one.

    The bytes are valid until the next step, and hold only the beginning of a batch larger than the buffer.
    """
    buffer = memoryview(bytearray(buffer_bytes))
    position, at, filled = start, 0, 0
    while position < end:
        if filled - at >= HEADER_BYTES:
            header = read_header(buffer, at)
            size_bytes = header.length + LOG_OVERHEAD_BYTES
        else:
            size_bytes = HEADER_BYTES
        if filled - at < size_bytes and (at or not filled):
            at, filled = 0, file.pread_into(buffer[: end - position], position)
            if filled < HEADER_BYTES:
                raise BadBatch(position, f"the file ends after {filled} bytes of a batch header")
            header = read_header(buffer)
            size_bytes = header.length + LOG_OVERHEAD_BYTES
        _check_shape(header, position, end)
        batch = buffer[at : min(at + size_bytes, filled)]
        crc = crc32c(batch[_COVERED_AT:])
        if len(batch) < size_bytes:
            crc = _crc_of_rest(file, position + len(batch), position + size_bytes, crc)
        if crc != header.crc:
            raise BadBatch(position, f"the CRC is {crc:#010x}, the header says {header.crc:#010x}")
        yield position, header, batch
        position += size_bytes
        at += size_bytes


def _check_shape(header: BatchHeader, position: int, end: int) -> None:
    try:
        check_header(header)
    except CorruptMessage as error:
        raise BadBatch(position, str(error)) from None
    if position + header.length + LOG_OVERHEAD_BYTES > end:
        raise BadBatch(position, f"a batch of {header.length + LOG_OVERHEAD_BYTES} bytes runs past the file's end")


def _crc_of_rest(file: File, position: int, end: int, crc: int) -> int:
    while position < end:
        data = file.pread(min(_BUFFER_BYTES, end - position), position)
        if not data:
            raise BadBatch(position, "the file became shorter while it was read")
        crc = crc32c(data, crc)
        position += len(data)
    return crc
