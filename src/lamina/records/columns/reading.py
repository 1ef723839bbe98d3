"""From a buffer of record batches to columns, batch after batch.

Owns which batches are left out, and how far decompressed records pile up: about a mebibyte beside what a single batch
holds. Must not know where the bytes come from.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from lamina.errors import CorruptMessage, MessageTooLarge, UnsupportedCompression
from lamina.records.aborted import AbortedTransactions
from lamina.records.batch import CODEC_MASK, CONTROL_BIT, TRANSACTIONAL_BIT, Buffer, read_header
from lamina.records.codecs import decompress
from lamina.records.columns.buffers import ColumnBuffers, Filled
from lamina.records.columns.filling import MALFORMED, PLACE_COLUMNS, ROW
from lamina.records.columns.headers import Rows, read_headers
from lamina.records.columns.layout import (
    ATTRIBUTES,
    BASE_OFFSET,
    BATCH_COLUMNS,
    LAST_OFFSET,
    PAYLOAD_END,
    PAYLOAD_START,
    POSITION,
    PRODUCER_ID,
    RECORD_COUNT,
)
from lamina.records.columns.memory import Bytes
from lamina.records.faults import damage, describe_batch, describe_records, is_cut_off
from lamina.records.marker import ControlType, read_marker

_SLICE_BYTES = 2 * 1024 * 1024
_SLICE_ROWS = 16 * 1024
_JOINED_BYTES = 1024 * 1024
"""How much is decompressed before it is read, unless one batch is more."""

MAX_DECOMPRESSED_BYTES = 2**31 - 1
"""Of the records of one batch: Java's readers can hold no more either."""


class AbortedTransaction(NamedTuple):
    """As a Fetch response lists it."""

    producer_id: int
    first_offset: int


def end_of_batches(data: Buffer, due: int) -> tuple[int, int]:
    """Where the batches end that are whole, and the offset behind them, or ``due`` without one; CRCs are left alone."""
    array: Bytes = np.frombuffer(data, np.uint8)
    rows = np.empty((_SLICE_ROWS, BATCH_COLUMNS), np.int64)
    position, is_bad = 0, False
    while position < len(array) and not is_bad:
        count, position, is_bad = read_headers(array, position, due, False, len(array), rows)
        if count:
            due = int(rows[count - 1, LAST_OFFSET]) + 1
    return position, due


class ColumnReader:
    """Reads one buffer of whole batches; a part of a batch at its end is left out."""

    def __init__(
        self,
        data: Buffer,
        columns: Sequence[str],
        offsets: tuple[int, int],
        aborted: Sequence[tuple[int, int]] | None,
        max_batch_bytes: int,
        name: str,
        first_position: int = 0,
    ) -> None:
        """``first_position`` is where the buffer begins in what ``name`` is the name of."""
        self._data: Bytes = np.frombuffer(data, np.uint8)
        self._start_offset, self._end_offset = offsets
        self._aborted = AbortedTransactions([AbortedTransaction(*entry) for entry in aborted or ()])
        self._buffers = ColumnBuffers(columns, max_batch_bytes)
        self._name = name
        self.first_position = first_position
        self.next_offset = self._start_offset
        """Where what follows this buffer begins, once all of it was read."""

    def read(self) -> Iterator[Filled]:
        """Raises :class:`CorruptMessage` with one sentence, at a batch that is not what it says."""
        rows = np.empty((_SLICE_ROWS, BATCH_COLUMNS), np.int64)
        position = due = 0
        while position < len(self._data):
            count, position, is_bad = read_headers(self._data, position, due, True, _SLICE_BYTES, rows)
            if count:
                due = int(rows[count - 1, LAST_OFFSET]) + 1
                yield from self._read_slice(rows[:count])
                self.next_offset = max(self.next_offset, min(due, self._end_offset))
            if self.next_offset == self._end_offset or (is_bad and is_cut_off(self._data.data, position, due)):
                break
            if is_bad:
                reason = describe_batch(self._data.data, position, due)
                raise self._damage(position, max(due, self._start_offset), reason)
        if self._buffers.count:
            yield self._buffers.take()

    def _read_slice(self, rows: Rows) -> Iterator[Filled]:
        skips = self._skipped(rows)
        for payload, part, skipped in self._payloads(rows, skips):
            place = np.zeros(PLACE_COLUMNS, np.int64)
            while status := self._buffers.fill(
                self._data, payload, part, skipped, place, self._start_offset, self._end_offset
            ):
                if status == MALFORMED:
                    raise self._malformed(part[place[ROW]], payload)
                yield self._buffers.take()

    def _skipped(self, rows: Rows) -> Bytes:
        """One byte a batch: whether none of its records is asked for."""
        attributes = rows[:, ATTRIBUTES]
        is_control = attributes & CONTROL_BIT != 0
        skips = is_control | (rows[:, LAST_OFFSET] < self._start_offset) | (rows[:, BASE_OFFSET] >= self._end_offset)
        if not self._aborted.is_over:
            for index in np.flatnonzero(attributes & (TRANSACTIONAL_BIT | CONTROL_BIT)).tolist():
                skips[index] |= self._is_aborted(rows[index], bool(is_control[index]))
        flags: Bytes = skips.astype(np.uint8)
        return flags

    def _is_aborted(self, row: Rows, is_control: bool) -> bool:
        producer_id = int(row[PRODUCER_ID])
        self._aborted.advance(int(row[LAST_OFFSET]))
        if not is_control:
            return self._aborted.ongoing(producer_id) is not None
        position = int(row[POSITION])
        try:
            marker = read_marker(self._data.data, position, read_header(self._data.data, position))
        except CorruptMessage as error:
            raise self._damage(position, int(row[BASE_OFFSET]), str(error)) from None
        if marker is not None and marker.control_type is ControlType.ABORT:
            self._aborted.end(producer_id)
        return True

    def _payloads(self, rows: Rows, skips: Bytes) -> Iterator[tuple[Bytes, Rows, Bytes]]:
        """Where the records of the batches lie, as their rows then say, for some batches at a time."""
        inflates = ((rows[:, ATTRIBUTES] & CODEC_MASK != 0) & (skips == 0)).tolist()
        begin = 0
        while begin < len(rows):
            end = begin
            if not inflates[begin]:
                while end < len(rows) and not inflates[end]:
                    end += 1
                yield self._data, rows[begin:end], skips[begin:end]
            else:
                pieces: list[Bytes] = []
                joined_bytes = 0
                while end < len(rows) and inflates[end] and joined_bytes < _JOINED_BYTES:
                    pieces.append(self._decompress(rows[end]))
                    rows[end, PAYLOAD_START] = joined_bytes
                    joined_bytes += len(pieces[-1])
                    rows[end, PAYLOAD_END] = joined_bytes
                    end += 1
                yield pieces[0] if len(pieces) == 1 else np.concatenate(pieces), rows[begin:end], skips[begin:end]
            begin = end

    def _decompress(self, row: Rows) -> Bytes:
        piece = self._data[row[PAYLOAD_START] : row[PAYLOAD_END]]
        if not row[RECORD_COUNT] and not len(piece):
            return piece
        try:
            plain = decompress(int(row[ATTRIBUTES]) & CODEC_MASK, piece.data, MAX_DECOMPRESSED_BYTES)
        except (CorruptMessage, MessageTooLarge, UnsupportedCompression) as error:
            raise self._damage(int(row[POSITION]), int(row[BASE_OFFSET]), str(error)) from None
        return np.frombuffer(plain, np.uint8)

    def _malformed(self, row: Rows, payload: Bytes) -> CorruptMessage:
        records = payload[row[PAYLOAD_START] : row[PAYLOAD_END]].data
        return self._damage(
            int(row[POSITION]), int(row[BASE_OFFSET]), describe_records(records, int(row[RECORD_COUNT]))
        )

    def _damage(self, position: int, offset: int, reason: str) -> CorruptMessage:
        return CorruptMessage(damage(self._name, self.first_position + position, offset, reason))
