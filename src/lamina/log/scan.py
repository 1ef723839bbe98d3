"""Reading a log file from batch to batch in a fixed amount of memory: its headers only, or with every CRC checked.

What a segment, recovery, verification and the tools walk a file with. Must not change anything.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from lamina.errors import CorruptMessage
from lamina.log.files import File
from lamina.records.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, BatchHeader, check_header, read_header
from lamina.records.checksum import crc32c

_HEADERS_BYTES = 16 * 1024
_WINDOW_BYTES = 4 * 1024 * 1024
_REST_BYTES = 1024 * 1024
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
    file: File, start: int, end: int, window_bytes: int = _WINDOW_BYTES
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Position, header and bytes of every batch in ``[start, end)``; raises :class:`BadBatch` at the first bad one.

    The bytes are valid until the next step, and hold only the beginning of a batch larger than a sixteenth of a window.
    """
    position = start
    for window_start, window in _windows(file, start, end, window_bytes):
        window_end = min(window_start + window_bytes, end)
        while position < window_end:
            at = position - window_start
            if len(window) - at < HEADER_BYTES:
                raise BadBatch(position, f"the file ends after {len(window) - at} bytes of a batch header")
            header = read_header(window, at)
            size_bytes = header.length + LOG_OVERHEAD_BYTES
            _check_shape(header, position, end)
            batch = window[at : at + size_bytes]
            crc = crc32c(batch[_COVERED_AT:])
            if len(batch) < size_bytes:
                crc = _crc_of_rest(file, position + len(batch), position + size_bytes, crc)
            if crc != header.crc:
                raise BadBatch(position, f"the CRC is {crc:#010x}, the header says {header.crc:#010x}")
            yield position, header, batch
            position += size_bytes


def _windows(file: File, start: int, end: int, window_bytes: int) -> Iterator[tuple[int, memoryview]]:
    """The file in windows that reach into the next one, so that a batch is rarely cut in two.

    While one is looked at, the next is read on a thread: copying and checking take about as long as each other.
    """
    reach_bytes = window_bytes + max(window_bytes // 16, HEADER_BYTES)

    def read(buffer: memoryview, position: int) -> memoryview:
        wanted = buffer[: min(reach_bytes, end - position)]
        return wanted[: file.pread_into(wanted, position)]

    if end - start <= window_bytes:
        yield start, read(memoryview(bytearray(end - start)), start)
        return
    buffers = [memoryview(bytearray(reach_bytes)) for _ in range(2)]
    with ThreadPoolExecutor(1, thread_name_prefix="lamina-scan") as reader:
        reading = reader.submit(read, buffers[0], start)
        for number, window_start in enumerate(range(start, end, window_bytes), 1):
            window = reading.result()
            if window_start + window_bytes < end:
                reading = reader.submit(read, buffers[number % 2], window_start + window_bytes)
            yield window_start, window


def _check_shape(header: BatchHeader, position: int, end: int) -> None:
    try:
        check_header(header)
    except CorruptMessage as error:
        raise BadBatch(position, str(error)) from None
    if position + header.length + LOG_OVERHEAD_BYTES > end:
        raise BadBatch(position, f"a batch of {header.length + LOG_OVERHEAD_BYTES} bytes runs past the file's end")


def _crc_of_rest(file: File, position: int, end: int, crc: int) -> int:
    while position < end:
        data = file.pread(min(_REST_BYTES, end - position), position)
        if not data:
            raise BadBatch(position, "the file became shorter while it was read")
        crc = crc32c(data, crc)
        position += len(data)
    return crc
