"""Rewriting a group of segments as one, by the verdicts on its batches and the marks on its records.

Every output batch comes from one input batch (fact 46). Codecs are applied here, between two pieces of compiled
code. Must not know how records were found to be superseded.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np

from lamina.cleaning.contract import OutputGroup, Plan, SourceSegment
from lamina.cleaning.header_scan import SegmentVerdicts
from lamina.cleaning.kernels.columns import (
    COUNTERS,
    EARLIEST_HORIZON,
    FATE,
    FATE_COLUMNS,
    LATEST_HORIZON,
    OUT_ATTRIBUTES,
    OUT_BASE_TIMESTAMP,
    OUT_END,
    OUT_MAX_TIMESTAMP,
    OUT_RECORDS,
    OUT_START,
)
from lamina.cleaning.kernels.index_entries import (
    BATCH_BYTES,
    BATCH_LAST_OFFSET,
    BATCH_POSITION,
    BATCH_TIMESTAMP,
    INDEXED_COLUMNS,
)
from lamina.cleaning.kernels.rewrite import MOST_GROWTH_BYTES, RECORD_COLUMNS, rewrite_batches
from lamina.cleaning.limits import Meter, unmetered
from lamina.cleaning.output import SegmentWriter
from lamina.cleaning.slices import SLICE_BYTES, Slice, Source
from lamina.compaction.grouping import GroupLimits, group_segments
from lamina.compaction.retain import COPY, DISCARD
from lamina.compaction.verdicts import DISCARD_RECORDS
from lamina.log.files import Disk
from lamina.records.batch import CODEC_MASK, Codec
from lamina.records.codecs import compress
from lamina.records.columns.headers import Rows
from lamina.records.columns.layout import (
    HEADER_BYTES,
    LAST_OFFSET,
    PAYLOAD_END,
    PAYLOAD_START,
    POSITION,
    RECORD_COUNT,
    SIZE,
)
from lamina.records.columns.memory import Bytes
from lamina.records.record import seal_batch

_NEVER, _EVER = 2**63 - 1, -(2**63)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A group's new segment and the figures of making it."""

    group: OutputGroup
    counters: tuple[int, ...]
    """As ``kernels.columns`` numbers them."""
    bytes_read: int
    bytes_written: int
    oversized_batches: int


def groups_of(plan: Plan) -> list[list[int]]:
    """The segments of a plan that become one, by their numbers (fact 42)."""
    limits = GroupLimits(plan.segment_bytes, plan.segment_index_bytes)
    numbers = {segment.base_offset: number for number, segment in enumerate(plan.segments)}
    return [[numbers[each.base_offset] for each in group] for group in group_segments(plan.segments, limits)]


def rewrite_group(
    plan: Plan,
    group: Sequence[int],
    verdicts: Sequence[SegmentVerdicts],
    superseded: Sequence[Bytes],
    attempt: str,
    *,
    disk: Disk | None = None,
    meter: Meter = unmetered,
    turn: AbstractContextManager[object] | None = None,
) -> Rewritten:
    """Write the new segment of one group; ``verdicts`` and ``superseded`` are by number of segment in the plan.

    ``turn`` is held while there is something to compute: not while the disk is waited for, at the end.
    """
    disk = disk or Disk()
    sources: list[SourceSegment] = [plan.segments[number] for number in group]
    rewriting = _Rewriting(plan, SegmentWriter(disk, plan, sources, attempt), meter)
    try:
        with turn or nullcontext():
            for number in group:
                rewriting.rewrite_source(Source(disk, plan, number), verdicts[number].flags, superseded[number])
        written = rewriting.writer.finish([entry for number in group for entry in verdicts[number].aborted])
    except BaseException:
        rewriting.writer.discard()
        raise
    counters = tuple(int(counter) for counter in rewriting.counters)
    return Rewritten(
        group=written,
        counters=counters,
        bytes_read=rewriting.bytes_read,
        bytes_written=sum(file.size_bytes for file in written.files),
        oversized_batches=rewriting.oversized_batches,
    )


class _Rewriting:
    """Buffers and figures of one group."""

    def __init__(self, plan: Plan, writer: SegmentWriter, meter: Meter) -> None:
        self._plan = plan
        self.writer = writer
        self._meter = meter
        self._out: Bytes = np.empty(2 * SLICE_BYTES, np.uint8)
        self._kept: Rows = np.empty((1 << 15, RECORD_COLUMNS), np.int64)
        self.counters = np.zeros(COUNTERS, np.int64)
        self.counters[EARLIEST_HORIZON] = _NEVER
        self.counters[LATEST_HORIZON] = _EVER
        self.bytes_read = 0
        self.oversized_batches = 0

    def rewrite_source(self, source: Source, flags: Bytes, superseded: Bytes) -> None:
        for piece in source.slices():
            self._rewrite(source, piece, flags, superseded)

    def _rewrite(self, source: Source, piece: Slice, flags: Bytes, superseded: Bytes) -> None:
        rows = piece.rows
        judged = np.ascontiguousarray(flags[piece.first_batch : piece.first_batch + len(rows)])
        payload = source.payload(rows, judged & np.uint8(DISCARD_RECORDS))
        fates = np.empty((len(rows), FATE_COLUMNS), np.int64)
        begin, ordinal = 0, piece.first_ordinal
        while begin < len(rows):
            end, ordinal, out_bytes, is_bad = rewrite_batches(
                source.data,
                payload,
                rows,
                judged,
                begin,
                ordinal,
                superseded,
                self._plan.first_uncleanable_offset,
                self._plan.pass_time_ms,
                self._plan.delete_retention_ms,
                self._out,
                self._kept,
                fates,
                self.counters,
            )
            if is_bad:
                raise source.corrupt_records(rows[end], payload)
            if end == begin:
                self._make_room(rows[end])
                continue
            self._write(source, rows[begin:end], fates[begin:end], out_bytes)
            begin = end
        self.bytes_read += piece.size_bytes
        self._meter(piece.size_bytes)

    def _make_room(self, row: Rows) -> None:
        """For a batch larger than any before (fact 49)."""
        records = int(row[RECORD_COUNT])
        payload_bytes = int(row[PAYLOAD_END] - row[PAYLOAD_START])
        most_bytes = HEADER_BYTES + max(payload_bytes + records * MOST_GROWTH_BYTES, int(row[SIZE]))
        if most_bytes > len(self._out):
            self._out = np.empty(most_bytes, np.uint8)
        if records > len(self._kept):
            self._kept = np.empty((records, RECORD_COLUMNS), np.int64)

    def _write(self, source: Source, rows: Rows, fates: Rows, out_bytes: int) -> None:
        out = self._out.data[:out_bytes]
        stays = fates[:, FATE] != DISCARD
        compressing = (fates[:, FATE] > COPY) & (fates[:, OUT_ATTRIBUTES] & CODEC_MASK != 0)
        sizes = fates[:, OUT_END] - fates[:, OUT_START]
        if compressing.any():
            out = self._compress(source, rows, fates, compressing, sizes, out)
        self.oversized_batches += int(((sizes > rows[:, SIZE]) & (sizes > self._plan.max_message_bytes)).sum())
        rows, fates, sizes = rows[stays], fates[stays], sizes[stays]
        batches = np.empty((len(rows), INDEXED_COLUMNS), np.int64)
        batches[:, BATCH_POSITION] = self.writer.size_bytes + np.cumsum(sizes) - sizes
        batches[:, BATCH_BYTES] = sizes
        batches[:, BATCH_LAST_OFFSET] = rows[:, LAST_OFFSET]
        batches[:, BATCH_TIMESTAMP] = fates[:, OUT_MAX_TIMESTAMP]
        self.writer.write(out, batches)
        self._meter(len(out))

    def _compress(
        self, source: Source, rows: Rows, fates: Rows, compressing: Rows, sizes: Rows, out: memoryview
    ) -> memoryview:
        """Put headers around the new records of compressed batches, each in its own codec; note their sizes."""
        whole = bytearray()
        taken = 0
        for index in np.flatnonzero(compressing).tolist():
            fate = fates[index]
            start, end = int(fate[OUT_START]), int(fate[OUT_END])
            whole += out[taken:start]
            taken = end
            attributes = int(fate[OUT_ATTRIBUTES])
            header = source.header(int(rows[index, POSITION]))._replace(
                attributes=attributes,
                base_timestamp=int(fate[OUT_BASE_TIMESTAMP]),
                max_timestamp=int(fate[OUT_MAX_TIMESTAMP]),
                record_count=int(fate[OUT_RECORDS]),
            )
            batch = seal_batch(header, compress(Codec(attributes & CODEC_MASK), out[start:end]))
            sizes[index] = len(batch)
            whole += batch
        whole += out[taken:]
        return memoryview(whole)
