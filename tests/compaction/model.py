"""One pass of compaction, slow and obviously right: written from the facts, knowing none of the code that it checks.

A log is segments of batches as bytes. Every question is answered by looking through the whole log again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lamina.records.batch import BatchHeader, read_header
from lamina.records.marker import ControlType, read_marker
from lamina.records.record import Record, build_empty_batch, read_records

LIMIT_BYTES = 1 << 24


@dataclass(frozen=True)
class Abort:
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass
class Segment:
    base_offset: int
    batches: list[bytes] = field(default_factory=list)
    aborts: list[Abort] = field(default_factory=list)

    @property
    def data(self) -> bytes:
        return b"".join(self.batches)


@dataclass(frozen=True)
class Pass:
    now_ms: int
    delete_retention_ms: int
    first_dirty_offset: int
    end_offset: int
    producers: dict[int, tuple[int, int | None]]
    """Epoch and last data offset of every active producer."""


@dataclass(frozen=True)
class Survivor:
    """What must be left of a batch: these very bytes, or this header (but for length and CRC) and these records."""

    copied: bytes | None
    header: BatchHeader
    records: tuple[Record, ...]


class _Batch:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.header = read_header(data)
        self.records = read_records(data, 0, self.header, LIMIT_BYTES)
        marker = read_marker(data, 0, self.header) if self.header.is_control else None
        self.control_type = marker.control_type if marker else None
        self.is_data = not self.header.is_control


def clean(
    segments: Sequence[Segment], all_aborts: Sequence[Abort], p: Pass
) -> list[tuple[list[Survivor], list[Abort]]]:
    """For each segment below the end of the pass: what is left of its batches, and its entries of aborts."""
    batches = [_Batch(data) for segment in segments for data in segment.batches]
    latest = _latest_offsets(batches, all_aborts, p)
    cleaned = []
    for segment in segments:
        survivors, aborts = [], []
        for data in segment.batches:
            batch = next(b for b in batches if b.data is data)
            survivor = _clean_batch(batch, batches, all_aborts, latest, p)
            if survivor is not None:
                survivors.append(survivor)
            if batch.control_type is ControlType.ABORT and not _is_discardable(batch, batches, all_aborts):
                aborts += [a for a in all_aborts if a.last_offset == batch.header.base_offset]
        cleaned.append((survivors, aborts))
    return cleaned


def _abort_of(batch: _Batch, aborts: Sequence[Abort]) -> Abort | None:
    """Facts 50 and 51."""
    header = batch.header
    if not batch.is_data or not header.is_transactional:
        return None
    for abort in aborts:
        if abort.producer_id == header.producer_id and abort.first_offset <= header.last_offset < abort.last_offset:
            return abort
    return None


def _is_discardable(batch: _Batch, batches: Sequence[_Batch], aborts: Sequence[Abort]) -> bool:
    if batch.is_data:
        return _abort_of(batch, aborts) is not None
    mine = [b for b in batches if b.header.producer_id == batch.header.producer_id and b.header.is_transactional]
    before = [b for b in mine if b.header.base_offset < batch.header.base_offset]
    if batch.control_type is None:  # fact 54
        return True
    if batch.control_type is ControlType.COMMIT:  # fact 52
        commits = [b.header.base_offset for b in before if b.control_type is ControlType.COMMIT]
        since = max(commits, default=-1)
        return not any(b.is_data and b.header.base_offset > since and _abort_of(b, aborts) is None for b in before)
    if batch.control_type is ControlType.ABORT:  # fact 53
        known = [a for a in aborts if a.last_offset == batch.header.base_offset]
        return not any(_abort_of(b, aborts) in known for b in before if _abort_of(b, aborts) is not None)
    return False


def _latest_offsets(batches: Sequence[_Batch], aborts: Sequence[Abort], p: Pass) -> dict[bytes, int]:
    """Facts 33-35."""
    latest = {}
    for batch in batches:
        if batch.is_data and _abort_of(batch, aborts) is None:
            for record in batch.records:
                if record.key is not None and record.offset >= p.first_dirty_offset:
                    latest[record.key] = record.offset
    return latest


def _is_protected(batch: _Batch, p: Pass) -> bool:
    """Fact 56."""
    header = batch.header
    if header.last_offset + 1 == p.end_offset:
        return True
    if header.producer_id == -1 or header.producer_id not in p.producers:
        return False
    epoch, last_data_offset = p.producers[header.producer_id]
    if last_data_offset is not None:
        return header.last_offset == last_data_offset
    return header.is_control and header.producer_epoch == epoch


def _survives(record: Record, batch: _Batch, latest: dict[bytes, int], p: Pass) -> bool:
    """Facts 61-63."""
    if not batch.is_data:
        return True
    if record.key is None:
        return False
    horizon = batch.header.delete_horizon_ms
    is_latest = record.offset >= latest.get(record.key, -1)
    return is_latest and (record.value is not None or horizon is None or p.now_ms < horizon)


def _clean_batch(
    batch: _Batch, batches: Sequence[_Batch], aborts: Sequence[Abort], latest: dict[bytes, int], p: Pass
) -> Survivor | None:
    header = batch.header
    horizon = header.delete_horizon_ms
    discardable = _is_discardable(batch, batches, aborts)
    drops = discardable and (batch.is_data or (horizon is not None and horizon <= p.now_ms))  # fact 55
    left = [] if drops else [record for record in batch.records if _survives(record, batch, latest, p)]
    if not left:  # facts 58 and 73
        if not _is_protected(batch, p):
            return None
        empty = bytes(build_empty_batch(header))
        return Survivor(empty, read_header(empty), ())
    if horizon is None and (any(r.value is None for r in left) or (discardable and not batch.is_data)):  # fact 66
        horizon = p.now_ms + p.delete_retention_ms
    elif len(left) == len(batch.records):  # fact 65
        return Survivor(batch.data, header, tuple(left))
    rebuilt = header._replace(  # facts 67 and 70
        record_count=len(left),
        attributes=header.attributes | (0x40 if horizon is not None else 0),
        base_timestamp=left[0].timestamp if horizon is None else horizon,
        max_timestamp=header.max_timestamp if header.is_log_append_time else max(r.timestamp for r in left),
    )
    return Survivor(None, rebuilt, tuple(left))
