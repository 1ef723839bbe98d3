"""A source segment of a plan as slices of batches, ready for compiled code.

Owns how a source is opened and checked, and where the records of its batches lie: in the file's map, or in a buffer
when some of a slice are compressed. Of a map only the pages about the current slice are held. Must not decide anything
about a batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lamina.cleaning.contract import Plan
from lamina.cleaning.failures import CorruptLog, SourceLost
from lamina.cleaning.kernels.keys import Flags
from lamina.errors import CorruptMessage, MessageTooLarge, UnsupportedCompression
from lamina.log.files import Disk, Map, forget_pages
from lamina.log.segment import LOG
from lamina.records.batch import CODEC_MASK, MAX_RELATIVE_OFFSET, BatchHeader, read_header
from lamina.records.codecs import decompress
from lamina.records.columns.headers import Rows, read_headers
from lamina.records.columns.layout import (
    ATTRIBUTES,
    BASE_OFFSET,
    BATCH_COLUMNS,
    LAST_OFFSET,
    PAYLOAD_END,
    PAYLOAD_START,
    POSITION,
    RECORD_COUNT,
    SIZE,
)
from lamina.records.columns.memory import Bytes
from lamina.records.faults import describe_batch, describe_records

SLICE_BYTES = 2 * 1024 * 1024
_SLICE_ROWS = 16 * 1024
_HELD_BYTES = 24 * 1024 * 1024
"""How much of a map stays behind the slice that was handed out last: threads may still be reading it."""
_FORGOTTEN_BYTES = 24 * 1024 * 1024
"""How much of it is let go at a time."""

_LIMIT_BYTES = 2**31 - 1
"""Of the records of one batch when decompressed: Java's readers can hold no more either."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A few batches that follow each other."""

    rows: Rows
    first_batch: int
    """Its number in the segment."""
    first_ordinal: int
    """The number of its first record in the segment."""

    @property
    def record_count(self) -> int:
        return int(self.rows[:, RECORD_COUNT].sum())

    @property
    def size_bytes(self) -> int:
        return int(self.rows[-1, POSITION] + self.rows[-1, SIZE] - self.rows[0, POSITION])


class Source:
    """One segment of a plan, mapped."""

    def __init__(self, disk: Disk, plan: Plan, number: int) -> None:
        self.segment = plan.segments[number]
        self.path = f"{plan.directory}/{self.segment.base_offset:020d}{LOG}"
        """What a person knows it by; the job reads the link in the pass folder."""
        self._link = f"{plan.pass_folder}/{self.segment.log_name}"
        self._mapped: Map | None = None
        self.data = self._map(disk)

    def _map(self, disk: Disk) -> Bytes:
        try:
            file = disk.open(self._link)
        except FileNotFoundError:
            raise SourceLost(f"{self._link} is gone; the next pass begins with what is there") from None
        try:
            if file.size() != self.segment.size_bytes:
                raise SourceLost(f"{self._link} has {file.size()} bytes, the plan says {self.segment.size_bytes}")
            if not self.segment.size_bytes:
                return np.empty(0, np.uint8)
            self._mapped = file.map(self.segment.size_bytes)
            return np.frombuffer(self._mapped, np.uint8)
        finally:
            file.close()

    def slices(self, *, checks_crc: bool = False) -> Iterator[Slice]:
        """Every batch of the segment; raises :class:`CorruptLog` at one that cannot be."""
        position = batch = ordinal = forgotten = 0
        next_offset = self.segment.base_offset
        while position < len(self.data):
            rows = np.empty((_SLICE_ROWS, BATCH_COLUMNS), np.int64)
            count, position, is_bad = read_headers(self.data, position, next_offset, checks_crc, SLICE_BYTES, rows)
            rows = rows[:count]
            if is_bad:
                next_offset = int(rows[-1, LAST_OFFSET]) + 1 if count else next_offset
                raise self._corrupt(position, next_offset, describe_batch(self.data.data, position, next_offset))
            next_offset = int(rows[-1, LAST_OFFSET]) + 1
            if next_offset > self._end_offset:
                raise self._corrupt(int(rows[-1, POSITION]), int(rows[-1, BASE_OFFSET]), self._beyond_the_end())
            found = Slice(rows, batch, ordinal)
            yield found
            batch += count
            ordinal += found.record_count
            if self._mapped is not None and position - forgotten > _HELD_BYTES + _FORGOTTEN_BYTES:
                forget_pages(self._mapped, forgotten, position - _HELD_BYTES)
                forgotten = position - _HELD_BYTES

    @property
    def _end_offset(self) -> int:
        return min(self.segment.next_base_offset, self.segment.base_offset + MAX_RELATIVE_OFFSET + 1)

    def _beyond_the_end(self) -> str:
        return f"its offsets reach beyond {self._end_offset - 1}, where this segment has to end"

    def _corrupt(self, position: int, offset: int, reason: str) -> CorruptLog:
        return CorruptLog(self.path, position, offset, reason)

    def header(self, position: int) -> BatchHeader:
        return read_header(self.data.data, position)

    def corrupt_records(self, row: Rows, payload: Bytes) -> CorruptLog:
        """For a batch with a right CRC around records, in ``payload``, that are not well-formed."""
        records = payload[row[PAYLOAD_START] : row[PAYLOAD_END]].data
        count, base_offset, last_offset = int(row[RECORD_COUNT]), int(row[BASE_OFFSET]), int(row[LAST_OFFSET])
        reason = describe_records(records, count, base_offset, last_offset)
        return self._corrupt(int(row[POSITION]), base_offset, reason)

    def payload(self, rows: Rows, unneeded: Flags) -> Bytes:
        """Where the records of the batches lie, as their rows now say; of those unneeded nowhere."""
        compressed = (rows[:, ATTRIBUTES] & CODEC_MASK != 0) & (unneeded == 0)
        if not compressed.any():
            return self.data
        pieces = []
        end = 0
        for row, is_compressed, is_unneeded in zip(rows, compressed.tolist(), unneeded.tolist(), strict=True):
            piece = self.data[row[PAYLOAD_START] : row[PAYLOAD_END]] if not is_unneeded else self.data[:0]
            if is_compressed:
                piece = self._decompress(row, piece)
            pieces.append(piece)
            row[PAYLOAD_START], row[PAYLOAD_END] = end, end + len(piece)
            end += len(piece)
        return np.concatenate(pieces)

    def _decompress(self, row: Rows, piece: Bytes) -> Bytes:
        if not len(piece):
            return piece
        try:
            return np.frombuffer(decompress(int(row[ATTRIBUTES]) & CODEC_MASK, piece.data, _LIMIT_BYTES), np.uint8)
        except (CorruptMessage, MessageTooLarge, UnsupportedCompression) as error:
            raise self._corrupt(int(row[POSITION]), int(row[BASE_OFFSET]), str(error)) from None
