"""The first look at the sources of a plan: CRCs checked, and of all batches those found that have to be judged.

Segments can be scanned side by side; judging them then follows log order (fact 103). Must not decide: that is
``compaction.verdicts``.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lamina.cleaning.contract import AbortedEntry, Plan
from lamina.cleaning.failures import CorruptLog
from lamina.cleaning.kernels.keys import Flags
from lamina.cleaning.limits import Meter, unmetered
from lamina.cleaning.slices import Source
from lamina.compaction.retain import NEVER_MS
from lamina.compaction.verdicts import BatchSummary, LastData, Verdicts
from lamina.errors import CorruptMessage
from lamina.log.files import Disk
from lamina.records.batch import CONTROL_BIT, DELETE_HORIZON_BIT, TRANSACTIONAL_BIT
from lamina.records.columns.headers import Rows
from lamina.records.columns.layout import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    LAST_OFFSET,
    POSITION,
    PRODUCER_EPOCH,
    PRODUCER_ID,
)
from lamina.records.marker import ControlType, read_marker

Summaries = npt.NDArray[np.void]

_SUMMARY = np.dtype(
    [
        ("number", np.int64),
        ("last_offset", np.int64),
        ("producer_id", np.int64),
        ("producer_epoch", np.int16),
        ("is_transactional", np.bool_),
        ("is_control", np.bool_),
        ("control_type", np.int16),
        ("horizon_ms", np.int64),
    ]
)
_NO_CONTROL_TYPE = -2
_SUMMARIES_AT_A_TIME = 4096


@dataclass(frozen=True, slots=True)
class HeaderScan:
    """What one segment holds, as far as verdicts go."""

    batch_count: int
    record_count: int
    holds_passed_horizon: bool
    summaries: Summaries
    """The batches that have to be judged, as columns: a log may be made of nothing else."""


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
    retained = np.array(sorted(_verdicts(plan).retained_offsets), np.int64)
    batches = records = 0
    holds_passed = False
    summaries: list[Summaries] = []
    for piece in source.slices(checks_crc=True):
        rows = piece.rows
        attributes = rows[:, ATTRIBUTES]
        passed = (attributes & DELETE_HORIZON_BIT != 0) & (rows[:, BASE_TIMESTAMP] <= plan.pass_time_ms)
        holds_passed = holds_passed or bool(passed.any())
        judged = (attributes & (TRANSACTIONAL_BIT | CONTROL_BIT) != 0) | _are_among(rows[:, LAST_OFFSET], retained)
        summaries.append(_summaries(source, rows[judged], piece.first_batch + np.flatnonzero(judged)))
        batches = piece.first_batch + len(rows)
        records = piece.first_ordinal + piece.record_count
        meter(piece.size_bytes)
    return HeaderScan(batches, records, holds_passed, np.concatenate([np.empty(0, _SUMMARY), *summaries]))


def judge_batches(plan: Plan, scans: Iterable[HeaderScan]) -> list[SegmentVerdicts]:
    """The verdicts on all batches of a plan, from the scans of all its segments in order, each let go once judged."""
    verdicts = _verdicts(plan)
    judged = []
    for scan in scans:
        flags = np.zeros(scan.batch_count, np.uint8)
        verdicts.kept_aborted.clear()
        for number, summary in _shown(scan.summaries):
            flags[number] = verdicts.judge(summary)
        aborted = tuple(entry for entry in verdicts.kept_aborted if isinstance(entry, AbortedEntry))
        judged.append(SegmentVerdicts(flags, scan.record_count, scan.holds_passed_horizon, aborted))
    return judged


def _are_among(values: Rows, ordered: Rows) -> npt.NDArray[np.bool_]:
    places = np.searchsorted(ordered, values)
    found: npt.NDArray[np.bool_] = ordered[np.minimum(places, len(ordered) - 1)] == values
    return found


def _verdicts(plan: Plan) -> Verdicts:
    producers = {each.producer_id: LastData(each.epoch, each.last_data_offset) for each in plan.producers}
    return Verdicts(plan.aborted, producers, plan.first_uncleanable_offset, plan.pass_time_ms)


def _summaries(source: Source, rows: Rows, numbers: Rows) -> Summaries:
    summaries = np.empty(len(rows), _SUMMARY)
    attributes = rows[:, ATTRIBUTES]
    summaries["number"] = numbers
    summaries["last_offset"] = rows[:, LAST_OFFSET]
    summaries["producer_id"] = rows[:, PRODUCER_ID]
    summaries["producer_epoch"] = rows[:, PRODUCER_EPOCH]
    summaries["is_transactional"] = attributes & TRANSACTIONAL_BIT != 0
    summaries["is_control"] = is_control = attributes & CONTROL_BIT != 0
    summaries["control_type"] = _NO_CONTROL_TYPE
    for index in np.flatnonzero(is_control).tolist():
        control_type = _control_type(source, rows[index])
        summaries["control_type"][index] = _NO_CONTROL_TYPE if control_type is None else control_type
    summaries["horizon_ms"] = np.where(attributes & DELETE_HORIZON_BIT != 0, rows[:, BASE_TIMESTAMP], NEVER_MS)
    return summaries


def _shown(summaries: Summaries) -> Iterator[tuple[int, BatchSummary]]:
    for start in range(0, len(summaries), _SUMMARIES_AT_A_TIME):
        for number, *header, kind, horizon_ms in summaries[start : start + _SUMMARIES_AT_A_TIME].tolist():
            last_offset, producer_id, producer_epoch, is_transactional, is_control = header
            control_type = None if kind == _NO_CONTROL_TYPE else ControlType(kind)
            yield (
                number,
                BatchSummary(
                    last_offset, producer_id, producer_epoch, is_transactional, is_control, control_type, horizon_ms
                ),
            )


def _control_type(source: Source, row: Rows) -> ControlType | None:
    position = int(row[POSITION])
    try:
        marker = read_marker(source.data.data, position, source.header(position))
    except CorruptMessage as error:
        raise CorruptLog(source.path, position, int(row[BASE_OFFSET]), str(error)) from None
    return None if marker is None else marker.control_type
