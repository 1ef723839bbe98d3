"""The log of one partition: where it starts and ends, appending to it and reading from it.

Owns the log start offset, the log end offset, the recovery point, and through them which records exist. All
state is touched by one thread. A disk error anywhere makes the log fail for good, with its directory; producer
state and offsets change only after a write succeeded. Trimming, retention, swapping, lookups by time and
flushing are in modules of their own. Must not know roles, high watermarks or requests.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from lamina.errors import CorruptMessage, OffsetOutOfRange, StorageError
from lamina.log.epochs import LeaderEpochs
from lamina.log.files import Disk
from lamina.log.index import MAX_RELATIVE_OFFSET
from lamina.log.index_pair import IndexShape
from lamina.log.lease import Lease
from lamina.log.positions import find, position_of
from lamina.log.producer_replay import record_producer
from lamina.log.producers import Origin, ProducerStates
from lamina.log.segment import Segment
from lamina.log.segments import Segments
from lamina.log.snapshots import write_snapshot
from lamina.log.verification import Verification
from lamina.records.batch import CONTROL_BIT, LOG_OVERHEAD_BYTES, BatchHeader, Buffer, stamp, walk
from lamina.records.marker import Marker, read_marker
from lamina.settings.log_config import LogConfig

_new_tuple = tuple.__new__


@dataclass(slots=True)
class LogState:
    """What is true of a log when it is opened; recovery finds it out."""

    segments: Segments
    producers: ProducerStates
    epochs: LeaderEpochs
    log_start_offset: int
    recovery_point: int


class Appended(NamedTuple):
    """Where a batch is; for a duplicate, where it already was."""

    first_offset: int
    last_offset: int
    is_duplicate: bool = False
    timestamp: int = -1


@dataclass(slots=True, frozen=True)
class Doomed:
    """Files that were renamed away and may be removed from ``due_ms`` on."""

    due_ms: int
    paths: list[str]


def initial_segment_bytes(config: LogConfig) -> int:
    """How large the log file of a new segment is made."""
    return config.segment_bytes if config.preallocate else 0


class PartitionLog:
    def __init__(
        self,
        disk: Disk,
        topic: str,
        partition: int,
        path: str,
        config: LogConfig,
        shape: IndexShape,
        state: LogState,
    ) -> None:
        self.disk = disk
        self.topic = topic
        self.partition = partition
        self.path = path
        self.config = config
        self.shape = shape
        self.segments = state.segments
        self.producers = state.producers
        self.epochs = state.epochs
        self.log_start_offset = state.log_start_offset
        self.log_end_offset = state.segments.active.next_offset
        self.recovery_point = state.recovery_point
        self.doomed: list[Doomed] = []
        self.failure: str | None = None
        """Why the log can no longer be used."""
        self.on_failure: Callable[[OSError], object] | None = None
        """Told of the first disk error; takes the whole directory offline."""
        self.on_roll: Callable[[PartitionLog], None] | None = None
        """Told when a segment was closed and wants to be flushed."""
        self.on_truncate: Callable[[int], None] | None = None
        """Told where the log ends after its end was cut."""

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    # Appending

    def append(
        self,
        batch: bytearray | memoryview,
        header: BatchHeader,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        verification: Verification | None = None,
        transaction_version: int = 0,
    ) -> Appended:
        """Append one batch as the leader: it gets the next offsets and is stamped in place.

        ``header`` is the batch's own, validated. ``verification`` lets it begin a transaction; ``transaction_version``
        is that of the transaction which a marker ends. Raises the producer's error, or :class:`StorageError`.
        """
        if self.failure is not None:
            raise self._error()
        _, length, _, _, _, attributes, last_offset_delta, _, max_timestamp, producer_id, _, _, _ = header
        marker = None
        if producer_id >= 0:
            if attributes & CONTROL_BIT:
                marker = self._check_marker(batch, header, transaction_version)
            else:
                duplicate = self.producers.check(header, origin, verification)
                if duplicate is not None:
                    return Appended(duplicate.first_offset, duplicate.last_offset, True, duplicate.timestamp)
        base_offset = self.log_end_offset
        last_offset = base_offset + last_offset_delta
        size_bytes = length + LOG_OVERHEAD_BYTES
        try:
            segment = self.segments.active
            if self._must_roll(segment, size_bytes, last_offset, max_timestamp, now_ms):
                segment = self.roll(now_ms)
            stamp(batch, 0, base_offset, leader_epoch)
            if leader_epoch > self.epochs.latest:
                self._begin_epoch(leader_epoch, base_offset)
            segment.append(batch, size_bytes, last_offset, max_timestamp)
            self.log_end_offset = last_offset + 1
            if producer_id >= 0:
                self._record_producer(segment, header, base_offset, marker)
        except OSError as error:
            raise self.fail(error) from error
        return _new_tuple(Appended, (base_offset, last_offset, False, max_timestamp))

    def append_as_follower(self, batches: Buffer, now_ms: int) -> None:
        """Append whole batches that already have their place, as a leader sent them."""
        if self.failure is not None:
            raise self._error()
        view = memoryview(batches)
        for position, header in walk(view):
            if header.base_offset < self.log_end_offset:
                raise CorruptMessage(
                    f"{self.name} ends at {self.log_end_offset}, a batch for offset {header.base_offset} came"
                )
            try:
                self._append_placed(view[position : position + header.size_bytes], header, now_ms)
            except OSError as error:
                raise self.fail(error) from error

    def _append_placed(self, batch: memoryview, header: BatchHeader, now_ms: int) -> None:
        marker = read_marker(batch, 0, header) if header.is_control and header.producer_id >= 0 else None
        segment = self.segments.active
        if self._must_roll(segment, header.size_bytes, header.last_offset, header.max_timestamp, now_ms):
            segment = self.roll(now_ms, header.base_offset)
        if header.leader_epoch > self.epochs.latest:
            self._begin_epoch(header.leader_epoch, header.base_offset)
        segment.append(batch, header.size_bytes, header.last_offset, header.max_timestamp)
        self.log_end_offset = header.next_offset
        if header.producer_id >= 0:
            self._record_producer(segment, header, header.base_offset, marker)

    def _check_marker(self, batch: Buffer, header: BatchHeader, transaction_version: int) -> Marker | None:
        marker = read_marker(batch, 0, header)
        if marker is not None and marker.coordinator_epoch is not None:
            self.producers.check_marker(header, marker.coordinator_epoch, transaction_version)
        return marker

    def _record_producer(self, segment: Segment, header: BatchHeader, base_offset: int, marker: Marker | None) -> None:
        aborted = record_producer(self.producers, header, base_offset, marker)
        if aborted is not None:
            segment.aborted.append(aborted)

    def _begin_epoch(self, epoch: int, start_offset: int) -> None:
        if self.epochs.assign(epoch, start_offset):
            self.epochs.save(sync=False)

    def _must_roll(self, segment: Segment, size_bytes: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """The conditions of formats.md §2.3 and fact 7. An empty segment rolls only when the offset does not fit."""
        if last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if not segment.size_bytes:
            return False
        config = self.config
        if segment.size_bytes + size_bytes > config.segment_bytes or segment.indexes.is_full:
            return True
        first_timestamp = segment.first_timestamp
        waited_ms = max_timestamp - first_timestamp if first_timestamp >= 0 else now_ms - segment.created_ms
        if waited_ms <= 0:
            return False
        limit_ms = min(config.segment_ms, config.max_compaction_lag_ms) if config.compact else config.segment_ms
        return waited_ms > limit_ms - self._jitter_ms(segment, limit_ms)

    def _jitter_ms(self, segment: Segment, limit_ms: int) -> int:
        """A share of ``segment.jitter.ms`` that stays the same for a segment, so that logs do not roll together."""
        jitter_ms = min(self.config.segment_jitter_ms, limit_ms)
        return crc32(f"{self.name}@{segment.base_offset}".encode()) % jitter_ms if jitter_ms else 0

    def roll(self, now_ms: int, base_offset: int = 0) -> Segment:
        """Close the active segment and begin the next one at the log end, or at ``base_offset`` if that is above."""
        base_offset = max(base_offset, self.log_end_offset)
        old = self.segments.active
        if old.base_offset == base_offset:
            return old
        self.require_online()
        try:
            write_snapshot(self.disk, self.path, base_offset, self.producers.producers.values(), sync=False)
            old.seal()
            old.modified_ms = now_ms
            if not self.recovery_point and len(self.segments) == 1:
                # Never flushed: a power cut that took the first segment's name would move the start of the log.
                self.disk.sync_dir(self.path)
            segment = Segment.create(
                self.disk, self.path, base_offset, self.shape, now_ms, initial_bytes=initial_segment_bytes(self.config)
            )
        except OSError as error:
            raise self.fail(error) from error
        self.segments.add(segment)
        if self.on_roll is not None:
            self.on_roll(self)
        return segment

    # Reading

    def read(self, offset: int, max_bytes: int, bound: int | None = None) -> Lease | None:
        """The batches from the one that holds ``offset`` on, as a range of a file; the caller gives it back.

        Never a byte of a batch that reaches ``bound`` (an offset; the log end if not given); at least one
        whole batch, and otherwise at most ``max_bytes``, which may cut the last batch. ``None`` when nothing
        lies in between. Raises :class:`OffsetOutOfRange` outside of the log.
        """
        if self.failure is not None:
            raise self._error()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(
                f"{self.name} holds offsets {self.log_start_offset} to {self.log_end_offset}, {offset} was asked for"
            )
        end = self.log_end_offset if bound is None else min(bound, self.log_end_offset)
        try:
            for number in range(self.segments.number_of(offset), len(self.segments)):
                segment = self.segments[number]
                if segment.base_offset >= end or offset >= end:
                    break
                lease = _read_segment(segment, offset, max_bytes, end)
                if lease is not None:
                    return lease
        except OSError as error:
            raise self.fail(error) from error
        return None

    def size_bytes(self) -> int:
        return self.segments.size_bytes()

    # Failing and closing

    def fail(self, error: OSError) -> StorageError:
        """Stop using the log; returns the error to raise."""
        if self.failure is None:
            self.failure = f"{self.name} is offline: {error}"
            if self.on_failure is not None:
                self.on_failure(error)
        return self._error()

    def require_online(self) -> None:
        """Raise :class:`StorageError` once the log has failed: nothing is tried a second time."""
        if self.failure is not None:
            raise self._error()

    def _error(self) -> StorageError:
        return StorageError(self.failure)

    def close(self) -> None:
        """Let go of every file, changing none: what is on disk is what a crash would leave."""
        for segment in self.segments:
            segment.close()


def _read_segment(segment: Segment, offset: int, max_bytes: int, end: int) -> Lease | None:
    found = find(segment, offset)
    if found is None:
        return None
    position, header = found
    end_position = position_of(segment, end)
    if end_position <= position:
        return None
    return segment.lease(position, min(end_position - position, max(max_bytes, header.size_bytes)))
