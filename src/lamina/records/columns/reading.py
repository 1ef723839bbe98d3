"""From a buffer of record batches to columns, batch after batch.

Owns which batches are left out, and how far decompressed records pile up: about a mebibyte of small batches, a batch of
a few, and of a larger one a window or its largest record. Must not know where the bytes come from.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from lamina.errors import CorruptMessage, MessageTooLarge, UnsupportedCompression
from lamina.records.aborted import AbortedTransactions
from lamina.records.batch import CODEC_MASK, CONTROL_BIT, TRANSACTIONAL_BIT, Buffer, read_header
from lamina.records.codecs import decompress, decompress_in_pieces
from lamina.records.columns.buffers import ColumnBuffers, Filled
from lamina.records.columns.filling import MALFORMED, NEXT_DELTA, PLACE_COLUMNS, RECORD_AT, ROW, Counters
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
from lamina.records.columns.windows import WINDOW_BYTES, record_windows
from lamina.records.faults import damage, describe_batch, describe_records, is_cut_off
from lamina.records.marker import ControlType, read_marker

_SLICE_BYTES = 2 * 1024 * 1024
_SLICE_ROWS = 16 * 1024
_JOINED_BYTES = 1024 * 1024
"""How much is decompressed before it is read, unless one batch is more."""
_WHOLE_BYTES = 8 * 1024 * 1024
"""A batch that decompresses to more is read in windows."""


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


class _Part(NamedTuple):
    """Some batches, or some records of one, ready to be read."""

    payload: Bytes
    rows: Rows
    skips: Bytes
    place: Counters
    first: int = 0
    """The index of the first record in its batch."""


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
        for part in self._parts(rows, skips):
            while status := self._buffers.fill(
                self._data, part.payload, part.rows, part.skips, part.place, self._start_offset, self._end_offset
            ):
                if status == MALFORMED:
                    raise self._malformed(part)
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

    def _parts(self, rows: Rows, skips: Bytes) -> Iterator[_Part]:
        """Where the records of the batches lie, as their rows then say, for some batches at a time."""
        inflates = ((rows[:, ATTRIBUTES] & CODEC_MASK != 0) & (skips == 0)).tolist()
        begin = 0
        while begin < len(rows):
            end = begin
            if not inflates[begin]:
                while end < len(rows) and not inflates[end]:
                    end += 1
                yield _part(self._data, rows[begin:end], skips[begin:end])
            else:
                pieces: list[Bytes] = []
                joined_bytes, is_large = 0, False
                while end < len(rows) and inflates[end] and joined_bytes < _JOINED_BYTES:
                    piece = self._decompress(rows[end])
                    if is_large := piece is None:
                        break
                    pieces.append(piece)
                    rows[end, PAYLOAD_START] = joined_bytes
                    joined_bytes += len(piece)
                    rows[end, PAYLOAD_END] = joined_bytes
                    end += 1
                if pieces:
                    joined = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
                    yield _part(joined, rows[begin:end], skips[begin:end])
                if is_large:
                    pieces.clear()
                    yield from self._windows(rows[end])
                    end += 1
            begin = end

    def _decompress(self, row: Rows) -> Bytes | None:
        """None where that is too much to have at once."""
        stored = self._data[row[PAYLOAD_START] : row[PAYLOAD_END]]
        if not row[RECORD_COUNT] and not len(stored):
            return stored
        try:
            plain = decompress(int(row[ATTRIBUTES]) & CODEC_MASK, stored.data, _WHOLE_BYTES)
        except MessageTooLarge:
            return None
        except (CorruptMessage, UnsupportedCompression) as error:
            raise self._damage(int(row[POSITION]), int(row[BASE_OFFSET]), str(error)) from None
        return np.frombuffer(plain, np.uint8)

    def _windows(self, row: Rows) -> Iterator[_Part]:
        """Of one batch; each good until the next."""
        stored = self._data[row[PAYLOAD_START] : row[PAYLOAD_END]]
        pieces = decompress_in_pieces(int(row[ATTRIBUTES]) & CODEC_MASK, stored.data)
        next_delta = 0
        try:
            for window in record_windows(pieces, int(row[RECORD_COUNT]), WINDOW_BYTES):
                rows = row[np.newaxis].copy()
                rows[0, [PAYLOAD_START, PAYLOAD_END, RECORD_COUNT]] = 0, len(window.records), window.record_count
                part = _part(window.records, rows, np.zeros(1, np.uint8), window.first)
                part.place[NEXT_DELTA] = next_delta
                yield part
                next_delta = int(part.place[NEXT_DELTA])
                if row[BASE_OFFSET] + next_delta >= self._end_offset:
                    return
        except CorruptMessage as error:
            raise self._damage(int(row[POSITION]), int(row[BASE_OFFSET]), str(error)) from None
        except MessageTooLarge as error:
            raise MessageTooLarge(
                f"{self._name}: a compressed batch at offset {row[BASE_OFFSET]} cannot be read: {error}"
            ) from None

    def _malformed(self, part: _Part) -> CorruptMessage:
        row = part.rows[part.place[ROW]]
        records = part.payload[row[PAYLOAD_START] : row[PAYLOAD_END]].data
        base_offset = int(row[BASE_OFFSET])
        reason = describe_records(records, int(row[RECORD_COUNT]), base_offset, int(row[LAST_OFFSET]), part.first)
        return self._damage(int(row[POSITION]), base_offset, reason)

    def _damage(self, position: int, offset: int, reason: str) -> CorruptMessage:
        return CorruptMessage(damage(self._name, self.first_position + position, offset, reason))


def _part(payload: Bytes, rows: Rows, skips: Bytes, first: int = 0) -> _Part:
    place = np.zeros(PLACE_COLUMNS, np.int64)
    place[RECORD_AT] = rows[0, PAYLOAD_START]
    return _Part(payload, rows, skips, place, first)
