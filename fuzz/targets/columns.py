"""Batches into columns by compiled code, beside the plain reader: the same rows, or one sentence with a position.

Where the compiled reader refuses, something in the buffer is bad: perhaps behind the end that was asked for.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from fuzz.choices import Choices
from fuzz.sealing import seal_batches
from lamina.errors import CorruptMessage, KafkaError, MessageTooLarge
from lamina.log.verify.records import record_fault
from lamina.records.aborted import AbortedTransactions
from lamina.records.batch import TRANSACTIONAL_BIT, BatchHeader, check_crc, check_header, read_header
from lamina.records.faults import is_cut_off
from lamina.records.marker import ControlType, read_marker
from lamina.records.record import read_records

try:
    from lamina.records.columns import reading
    from lamina.records.columns.arrow import TYPES, record_batches
    from lamina.records.columns.checking import are_as_told
except ImportError:
    _HAS_KERNELS = False
else:
    _HAS_KERNELS = True

_NAME = "orders-0"
_LIMIT_BYTES = 1 << 20
_UNBOUNDED = 2**63 - 1

Row = dict[str, Any]


def one(data: bytes) -> None:
    if not _HAS_KERNELS:
        return
    choices = Choices(data)
    is_sealed = choices.flag()
    start, number = choices.number(2), choices.number(2)
    end = number or _UNBOUNDED
    max_batch_bytes = choices.one_of((1, 4096, 1 << 20))
    mask = choices.number(2)
    columns = [column for bit, column in enumerate(TYPES) if not mask >> bit & 1] or ["offset"]
    aborted = [(choices.number(), choices.number()) for _ in range(choices.number() % 3)] if choices.flag() else None
    first_position = choices.number()
    buffer = choices.rest()
    if is_sealed:
        buffer = seal_batches(buffer)
    _check_end(buffer)
    found: list[Row] = []
    try:
        with _windows_of(64 if max_batch_bytes == 4096 else None):
            for batch in record_batches(
                buffer,
                columns=columns,
                start_offset=start,
                end_offset=end,
                aborted=aborted,
                max_batch_bytes=max_batch_bytes,
                name=_NAME,
                first_position=first_position,
            ):
                batch.validate(full=True)
                found += _as_rows(batch)
    except CorruptMessage as error:
        assert str(error).startswith(f"{_NAME} is damaged at position ")
        assert "\n" not in str(error)
        assert _is_bad(buffer)
        return
    try:
        plain = _plain_rows(buffer, start, end, aborted, first_position)
    except MessageTooLarge:
        return  # Only the plain reader has a limit.
    except CorruptMessage:
        assert end != _UNBOUNDED  # A batch that is read in windows is left where the range ends.
        return
    assert found == [{column: row[column] for column in columns} for row in plain]


@contextmanager
def _windows_of(size_bytes: int | None) -> Iterator[None]:
    """With a size, batches that decompress to more are read in windows."""
    if size_bytes is None:
        yield
        return
    with patch.object(reading, "_WHOLE_BYTES", size_bytes), patch.object(reading, "WINDOW_BYTES", size_bytes):
        yield


def _as_rows(batch: Any) -> list[Row]:
    if "timestamp" in batch.schema.names:
        at = batch.schema.get_field_index("timestamp")
        batch = batch.set_column(at, "timestamp", batch["timestamp"].cast("int64"))
    rows: list[Row] = batch.to_pylist()
    return rows


def _check_end(buffer: bytes) -> None:
    """What is whole ends where the plain reader says."""
    position = due = 0
    while not is_cut_off(buffer, position, due):
        header = read_header(buffer, position)
        if _header_fault(header, due):
            break
        _check_verdict(buffer[position : position + header.size_bytes], header)
        position, due = position + header.size_bytes, header.next_offset
    assert reading.end_of_batches(buffer, 0) == (position, due)


def _check_verdict(batch: bytes, header: BatchHeader) -> None:
    """`lamina verify` comes to the same by either reader, but for times that 64 bits cannot hold."""
    try:
        records = read_records(batch, 0, header, _LIMIT_BYTES)
        verdict = record_fault(header, records) is None
    except KafkaError:
        verdict = False
    else:
        verdict &= all(-(2**63) <= record.timestamp < 2**63 for record in records)
    try:
        assert are_as_told(batch, header, _LIMIT_BYTES) == verdict
    except KafkaError:
        assert not verdict


def _header_fault(header: BatchHeader, due: int) -> bool:
    try:
        check_header(header)
    except CorruptMessage:
        return True
    return header.base_offset < due


def _plain_rows(
    buffer: bytes, start: int, end: int, aborted: list[tuple[int, int]] | None, first_position: int
) -> list[Row]:
    rows: list[Row] = []
    tracked = AbortedTransactions([reading.AbortedTransaction(*entry) for entry in aborted or ()])
    position = due = 0
    # Of an empty range nothing is looked at.
    while start != end and due < end and not is_cut_off(buffer, position, due):
        header = read_header(buffer, position)
        check_header(header)
        assert header.base_offset >= due
        check_crc(buffer, position, header)
        is_wanted = not header.is_control
        if header.attributes & TRANSACTIONAL_BIT or header.is_control:
            tracked.advance(header.last_offset)
            if not header.is_control:
                is_wanted = tracked.ongoing(header.producer_id) is None
            elif aborted:
                marker = read_marker(buffer, position, header)
                if marker is not None and marker.control_type is ControlType.ABORT:
                    tracked.end(header.producer_id)
        if is_wanted and header.last_offset >= start and header.base_offset < end:
            rows += _rows_of(buffer, position, header, start, end, first_position)
        position, due = position + header.size_bytes, header.next_offset
    return rows


def _rows_of(buffer: bytes, position: int, header: BatchHeader, start: int, end: int, first_position: int) -> list[Row]:
    rows: list[Row] = []
    for record in read_records(buffer, position, header, _LIMIT_BYTES):
        if not start <= record.offset < end:
            continue
        sequence = (header.base_sequence + record.offset - header.base_offset) & (2**31 - 1)
        us = record.timestamp * 1000
        headers = [{"key": key.decode(errors="replace"), "value": value} for key, value in record.headers]
        rows.append(
            {
                "key": record.key,
                "value": record.value,
                "headers": headers or None,
                "offset": record.offset,
                "timestamp": us if -(2**63) < us < 2**63 else None,
                "timestampType": int(header.is_log_append_time),
                "producer_id": header.producer_id,
                "producer_epoch": header.producer_epoch,
                "sequence": -1 if header.base_sequence < 0 else sequence,
                "leader_epoch": header.leader_epoch,
                "batch_position": first_position + position,
            }
        )
    return rows


def _is_bad(buffer: bytes) -> bool:
    """Whether any batch is bad, in its header, its CRC, its records or their order."""
    position = due = 0
    while not is_cut_off(buffer, position, due):
        header = read_header(buffer, position)
        if _header_fault(header, due):
            return True
        try:
            check_crc(buffer, position, header)
            if header.is_control:
                read_marker(buffer, position, header)
            offsets = [record.offset for record in read_records(buffer, position, header, _LIMIT_BYTES)]
        except KafkaError:
            return True
        if offsets != sorted(set(offsets)) or not all(
            header.base_offset <= offset <= header.last_offset for offset in offsets
        ):
            return True
        position, due = position + header.size_bytes, header.next_offset
    return False
