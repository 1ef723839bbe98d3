"""The first look at the sources of a plan: CRCs checked, and of all batches those found that have to be judged.

Segments can be scanned side by side; judging them then follows log order (fact 103). Must not decide: that is
``compaction.verdicts``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lamina.cleaning.contract import AbortedEntry, Plan
from lamina.cleaning.failures import CorruptLog
from lamina.cleaning.kernels.columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    LAST_OFFSET,
    POSITION,
    PRODUCER_EPOCH,
    PRODUCER_ID,
)
from lamina.cleaning.kernels.headers import Rows
from lamina.cleaning.kernels.keys import Flags
from lamina.cleaning.slices import Source
from lamina.cleaning.throttle import Meter, unmetered
from lamina.compaction.times import NEVER_MS
from lamina.compaction.verdicts import BatchSight, LastData, Verdicts
from lamina.errors import CorruptMessage
from lamina.log.files import Disk
from lamina.records.batch import CONTROL_BIT, DELETE_HORIZON_BIT, TRANSACTIONAL_BIT
from lamina.records.marker import ControlType, read_marker


@dataclass(frozen=True, slots=True)
class HeaderScan:
    """What one segment holds, as far as verdicts go."""

    batch_count: int
    record_count: int
    holds_passed_horizon: bool
    numbers: tuple[int, ...]
    """Which batches, by number, are shown in ``sights``: the others need no judging."""
    sights: tuple[BatchSight, ...]


@dataclass(frozen=True, slots=True)
class SegmentVerdicts:
    """What was judged of one segment."""

    flags: Flags
    """One byte a batch."""
    record_count: int
    holds_passed_horizon: bool
    aborted: tuple[AbortedEntry, ...]
    """For the transaction index of the new segment (fact 53)."""


def scan_headers(plan: Plan, number: int, *, disk: Disk | None = None, meter: Meter = unmetered) -> HeaderScan:
    """Look at every batch of the plan's segment ``number``; raises :class:`CorruptLog` at a bad one."""
    source = Source(disk or Disk(), plan, number)
    protecting = np.array(sorted(_verdicts(plan).protecting_offsets), np.int64)
    batches = records = 0
    holds_passed = False
    numbers: list[int] = []
    sights: list[BatchSight] = []
    for piece in source.slices(checks_crc=True):
        rows = piece.rows
        attributes = rows[:, ATTRIBUTES]
        passed = (attributes & DELETE_HORIZON_BIT != 0) & (rows[:, BASE_TIMESTAMP] <= plan.pass_time_ms)
        holds_passed = holds_passed or bool(passed.any())
        judged = (attributes & (TRANSACTIONAL_BIT | CONTROL_BIT) != 0) | np.isin(rows[:, LAST_OFFSET], protecting)
        for index in np.flatnonzero(judged).tolist():
            numbers.append(piece.first_batch + index)
            sights.append(_sight(source, rows[index]))
        batches = piece.first_batch + len(rows)
        records = piece.first_ordinal + piece.record_count
        meter(piece.size_bytes)
    return HeaderScan(batches, records, holds_passed, tuple(numbers), tuple(sights))


def judge_batches(plan: Plan, scans: Sequence[HeaderScan]) -> list[SegmentVerdicts]:
    """The verdicts on all batches of a plan, from the scans of all its segments in order."""
    verdicts = _verdicts(plan)
    judged = []
    for scan in scans:
        flags = np.zeros(scan.batch_count, np.uint8)
        verdicts.kept_aborted.clear()
        for number, sight in zip(scan.numbers, scan.sights, strict=True):
            flags[number] = verdicts.judge(sight)
        aborted = tuple(entry for entry in verdicts.kept_aborted if isinstance(entry, AbortedEntry))
        judged.append(SegmentVerdicts(flags, scan.record_count, scan.holds_passed_horizon, aborted))
    return judged


def _verdicts(plan: Plan) -> Verdicts:
    producers = {each.producer_id: LastData(each.epoch, each.last_data_offset) for each in plan.producers}
    return Verdicts(plan.aborted, producers, plan.first_uncleanable_offset, plan.pass_time_ms)


def _sight(source: Source, row: Rows) -> BatchSight:
    attributes = int(row[ATTRIBUTES])
    is_control = attributes & CONTROL_BIT != 0
    return BatchSight(
        last_offset=int(row[LAST_OFFSET]),
        producer_id=int(row[PRODUCER_ID]),
        producer_epoch=int(row[PRODUCER_EPOCH]),
        is_transactional=attributes & TRANSACTIONAL_BIT != 0,
        is_control=is_control,
        control_type=_control_type(source, row) if is_control else None,
        horizon_ms=int(row[BASE_TIMESTAMP]) if attributes & DELETE_HORIZON_BIT else NEVER_MS,
    )


def _control_type(source: Source, row: Rows) -> ControlType | None:
    position = int(row[POSITION])
    try:
        marker = read_marker(source.data.data, position, source.header(position))
    except CorruptMessage as error:
        raise CorruptLog(source.path, position, int(row[BASE_OFFSET]), str(error)) from None
    return None if marker is None else marker.control_type
