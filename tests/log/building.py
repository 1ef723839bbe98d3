"""A small language to build logs in tests.

``a_log(tmp_path, segment_bytes=500)`` is an empty log; ``append(b"k=v", b"k")`` writes one batch with a record
and a tombstone; ``reopen()`` stops it as a clean shutdown or as a crash would and opens what is on disk.
Time stands still unless a test moves ``now_ms``.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from lamina.log.entries import OpenMaps
from lamina.log.files import Disk
from lamina.log.flushing import close_cleanly
from lamina.log.index_pair import IndexRebuilds, IndexShape
from lamina.log.leftovers import CLEANED
from lamina.log.partition_log import Appended, PartitionLog
from lamina.log.recovery import Opening, Report, open_log
from lamina.log.retention import delete_expired
from lamina.log.rolling import initial_segment_bytes
from lamina.log.segment import Segment
from lamina.log.steps import run_steps
from lamina.records.batch import BatchHeader, read_header, walk
from lamina.records.marker import ControlType, build_marker
from lamina.records.record import Record, build_batch, read_records
from lamina.settings.log_config import DAY_MS, LONG_MAX, LogConfig

NOW_MS = 1_700_000_000_000
LIMIT_BYTES = 1 << 20

# Small enough that a handful of batches fills segments and indexes, and that nothing large is preallocated.
SMALL = LogConfig(segment_bytes=1000, segment_index_bytes=1200, index_interval_bytes=200)

_opened: list[Callable[[], None]] = []
"""How to close what this test opened."""


def close_later(close: Callable[[], None]) -> None:
    """Close something when the test is over; it may be closed before."""
    _opened.append(close)


def close_opened() -> None:
    while _opened:
        _opened.pop()()


def shape_of(config: LogConfig) -> IndexShape:
    return IndexShape(config.segment_index_bytes, config.index_interval_bytes, OpenMaps(), IndexRebuilds())


def pair(text: bytes) -> tuple[bytes, bytes | None]:
    """``k=v`` is a record, ``k`` a tombstone."""
    key, equals, value = text.partition(b"=")
    return key, value if equals else None


def a_batch(*texts: bytes, timestamp: int = NOW_MS, base_offset: int = 0, **fields: Any) -> bytearray:
    """One batch of records; ``fields`` are those of ``build_batch``."""
    records = [Record(base_offset + number, timestamp, *pair(text)) for number, text in enumerate(texts)]
    return build_batch(records, **fields)


def read_bytes(log: PartitionLog, offset: int, max_bytes: int = LIMIT_BYTES, bound: int | None = None) -> bytes:
    lease = log.read(offset, max_bytes, bound)
    if lease is None:
        return b""
    with lease:
        data = lease.read()
    assert len(data) == lease.size_bytes > 0
    return data


def batches_of(log: PartitionLog) -> list[tuple[BatchHeader, bytes]]:
    """Every batch from the log start on, read as a consumer would."""
    found = []
    offset = log.log_start_offset
    while data := read_bytes(log, offset):
        for position, header in walk(data):
            found.append((header, data[position : position + header.size_bytes]))
            offset = header.next_offset
    return found


def records_of(log: PartitionLog) -> list[Record]:
    """Every record of a client from the log start on."""
    return [
        record
        for header, data in batches_of(log)
        if not header.is_control
        for record in read_records(data, 0, header, LIMIT_BYTES)
        if record.offset >= log.log_start_offset
    ]


def truncate_log(log: PartitionLog, offset: int, now_ms: int, *, fully: bool = False) -> None:
    """Cut a log, or empty it, as its directory does once the checkpoints are lowered."""
    log.begin_truncation(offset, fully=fully)
    run_steps(log.finish_truncation(now_ms))


def expire(log: PartitionLog, now_ms: int, high_watermark: int) -> list[Segment]:
    """Run retention; the segments that went."""
    before = list(log.segments)
    run_steps(delete_expired(log, now_ms, high_watermark))
    return [segment for segment in before if segment not in log.segments]


class LogBuilder:
    """One partition's log in a directory of its own, and the hands that write to it."""

    def __init__(self, path: Path, config: LogConfig, disk: Disk | None = None) -> None:
        self.path = path
        self.config = config
        self.disk = disk or Disk()
        self.now_ms = NOW_MS
        path.mkdir(parents=True, exist_ok=True)
        self.log, self.report = self._open(clean=True, recovery_point=0, log_start_offset=0)

    def _open(
        self, *, clean: bool, recovery_point: int, log_start_offset: int, high_watermark: int = LONG_MAX
    ) -> tuple[PartitionLog, Report]:
        opening = Opening(
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            high_watermark=high_watermark,
            may_have_gaps=True,
            now_ms=self.now_ms,
            producer_expiration_ms=DAY_MS,
            initial_segment_bytes=initial_segment_bytes(self.config),
        )
        shape = shape_of(self.config)
        state, report = open_log(self.disk, str(self.path), shape, opening)
        log = PartitionLog(self.disk, "topic", 0, str(self.path), self.config, shape, state)
        close_later(log.close)
        return log, report

    def reopen(self, *, clean: bool = True, recovery_point: int | None = None) -> Report:
        """Stop and open again. A crash leaves the files as they are; what was flushed is known, unless given."""
        self.stop(clean=clean)
        return self.start(clean=clean, recovery_point=recovery_point)

    def stop(self, *, clean: bool = True) -> None:
        if clean:
            close_cleanly(self.log)
        else:
            self.log.close()

    def start(
        self,
        *,
        clean: bool = True,
        recovery_point: int | None = None,
        log_start_offset: int | None = None,
        high_watermark: int = LONG_MAX,
    ) -> Report:
        """Open what is on disk, with what the log that was stopped knew unless it is given."""
        log = self.log
        self.log, self.report = self._open(
            clean=clean,
            recovery_point=log.recovery_point if recovery_point is None else recovery_point,
            log_start_offset=log.log_start_offset if log_start_offset is None else log_start_offset,
            high_watermark=high_watermark,
        )
        return self.report

    def append(self, *texts: bytes, timestamp: int | None = None, epoch: int = 0, **fields: Any) -> Appended:
        """One batch of records, written by the leader of ``epoch``."""
        batch = a_batch(*texts, timestamp=self.now_ms if timestamp is None else timestamp, **fields)
        return self.log.append(batch, read_header(batch), epoch, self.now_ms)

    def append_batches(self, count: int, **fields: Any) -> None:
        """As many batches of one record, keys ``k0``, ``k1`` …"""
        for number in range(count):
            self.append(b"k%d=v%d" % (number, number), **fields)

    def end_transaction(
        self, control_type: ControlType, producer_id: int, producer_epoch: int = 0, coordinator_epoch: int = 0
    ) -> Appended:
        marker = build_marker(
            control_type,
            offset=0,
            timestamp_ms=self.now_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
        )
        return self.log.append(marker, read_header(marker), 0, self.now_ms)

    def commit(self, producer_id: int, **fields: int) -> Appended:
        return self.end_transaction(ControlType.COMMIT, producer_id, **fields)

    def abort(self, producer_id: int, **fields: int) -> Appended:
        return self.end_transaction(ControlType.ABORT, producer_id, **fields)

    def rewrite(self, segments: Iterable[Segment], keep: Iterable[bytearray]) -> Segment:
        """The ``.cleaned`` segment that a cleaner would make of ``segments``: the batches to ``keep``."""
        sources = list(segments)
        new = Segment.create(
            self.disk, str(self.path), sources[0].base_offset, self.log.shape, self.now_ms, suffix=CLEANED
        )
        for batch in keep:
            header = read_header(batch)
            new.append(batch, header.size_bytes, header.last_offset, header.max_timestamp)
        new.seal()
        close_later(new.close)
        new.modified_ms = sources[-1].modified_ms
        return new

    # Looking

    def read(self, offset: int, max_bytes: int = LIMIT_BYTES, bound: int | None = None) -> bytes:
        return read_bytes(self.log, offset, max_bytes, bound)

    def batches(self) -> list[tuple[BatchHeader, bytes]]:
        return batches_of(self.log)

    def records(self) -> list[Record]:
        return records_of(self.log)

    def texts(self) -> list[bytes]:
        """The records as they were given to ``append``."""
        return [
            (record.key or b"") + (b"" if record.value is None else b"=" + record.value) for record in self.records()
        ]

    def bases(self) -> list[int]:
        return [segment.base_offset for segment in self.log.segments]

    def names(self) -> list[str]:
        return sorted(entry.name for entry in self.path.iterdir())

    def file(self, base_offset: int, extension: str) -> Path:
        return self.path / f"{base_offset:020d}{extension}"


def a_log(tmp_path: Path, disk: Disk | None = None, **settings: Any) -> LogBuilder:
    """An empty log with small segments; ``settings`` are fields of ``LogConfig``."""
    return LogBuilder(tmp_path / "topic-0", replace(SMALL, **settings), disk)
