"""Going on behind a bad batch: every batch of a log file, the bad ones included.

Recovery stops at the first bad batch; the tools want to know what lies behind it. Must not change anything.
"""

from collections.abc import Iterator
from typing import NamedTuple

from lamina.errors import CorruptMessage, MessageTooLarge
from lamina.log.files import File
from lamina.log.scan import BadBatch, checked_batches
from lamina.records.batch import HEADER_BYTES, BatchHeader, check_header, read_header
from lamina.records.record import Record, read_records

MAX_RECORDS_BYTES = 128 * 1024 * 1024
"""What the records of one batch may take, compressed or not, before they are passed over."""


class Walked(NamedTuple):
    position: int
    header: BatchHeader
    data: memoryview
    """Valid until the next step; the beginning only of a batch larger than the buffer, and empty for a bad one."""
    fault: str | None
    """What is wrong with a batch whose header still tells where the next one begins."""


def walk_batches(file: File, end: int) -> Iterator[Walked]:
    """Every batch in ``[0, end)``; raises :class:`BadBatch` where no batch can be made out any more."""
    start = 0
    while start < end:
        try:
            for position, header, data in checked_batches(file, start, end):
                yield Walked(position, header, data, None)
            return
        except BadBatch as bad:
            header_behind = _framed_header(file, bad.position, end)
            if header_behind is None:
                raise
            yield Walked(bad.position, header_behind, memoryview(b""), bad.reason)
            start = bad.position + header_behind.size_bytes


def _framed_header(file: File, position: int, end: int) -> BatchHeader | None:
    """The header at ``position`` if its length can be believed."""
    data = file.pread(HEADER_BYTES, position)
    if len(data) < HEADER_BYTES:
        return None
    header = read_header(data)
    try:
        check_header(header)
    except CorruptMessage:
        return None
    return header if position + header.size_bytes <= end else None


def records_of(file: File, batch: Walked) -> list[Record]:
    """The records of a good batch."""
    return read_records(whole_batch(file, batch), 0, batch.header, MAX_RECORDS_BYTES)


def whole_batch(file: File, batch: Walked) -> memoryview:
    """The bytes of a good batch, read again from the file where the buffer did not hold all of it."""
    header, data = batch.header, batch.data
    if header.size_bytes > MAX_RECORDS_BYTES:
        raise MessageTooLarge(f"a batch of {header.size_bytes} bytes is too large to be looked into")
    if len(data) < header.size_bytes:
        data = memoryview(bytearray(header.size_bytes))
        if file.pread_into(data, batch.position) < header.size_bytes:
            raise CorruptMessage("the file became shorter while it was read")
    return data
