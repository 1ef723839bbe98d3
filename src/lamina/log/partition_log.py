"""The log of one partition: where it starts and ends, appending to it, reading from it, making it shorter.

Owns the log start offset, the log end offset, the recovery point, the list of segments and why the log is offline. They
change in here and nowhere else; what other modules do for a log is either a decision or work on files. All state is
touched by one thread. What waits for the disk is done in steps (``steps``). A disk error takes the log offline for
good, with its directory; producer state and offsets change only after a write succeeded. Must not know roles, high
watermarks or requests.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from lamina.errors import CorruptMessage, OffsetOutOfRange, StorageError
from lamina.log.descriptors import is_temporary
from lamina.log.files import Disk
from lamina.log.index_pair import IndexShape
from lamina.log.lease import Lease
from lamina.log.leftovers import DELETED
from lamina.log.pending_deletes import PendingDeletes
from lamina.log.producer_replay import checked_marker, prepare_abort, record_in_segment
from lamina.log.producer_states import Origin, VerificationGuard
from lamina.log.recovery import LogState
from lamina.log.rolling import initial_segment_bytes, is_due
from lamina.log.segment import Segment
from lamina.log.segment_end import cut_indexes
from lamina.log.segment_list import SegmentList
from lamina.log.snapshots import write_snapshot
from lamina.log.steps import Step, Steps
from lamina.log.swap import Swap, rename_snapshot
from lamina.log.transaction_index import AbortedTransaction
from lamina.log.truncation import Truncation
from lamina.records.batch import CONTROL_BIT, LOG_OVERHEAD_BYTES, MAX_RELATIVE_OFFSET, BatchHeader, Buffer, stamp, walk
from lamina.records.marker import read_marker
from lamina.settings.log_config import LogConfig

_new_tuple = tuple.__new__

logger = logging.getLogger(__name__)


class Appended(NamedTuple):
    """Where a batch is; for a duplicate, where it already was."""

    first_offset: int
    last_offset: int
    is_duplicate: bool = False
    timestamp: int = -1


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
        self.shape = shape
        self.producers = state.producers
        self.epochs = state.epochs
        self.checkpointed_high_watermark = state.high_watermark
        """Where the high watermark was when it was last written down, or the nearest offset that is in the log."""
        self._config = config
        self._segments = state.segments
        self._log_start_offset = state.log_start_offset
        self._log_end_offset = state.segments.active.next_offset
        self._recovery_point = state.recovery_point
        self._pending_deletes = PendingDeletes()
        self._truncation: Truncation | None = None
        self._swaps = 0
        """Replacements of segments that have begun and not ended."""
        self._failure: str | None = None
        self._are_names_durable = state.recovery_point > 0
        self.cuts = 0
        """Another number whenever the end was cut: what was read of the files before may be something else now."""
        self.on_failure: Callable[[OSError], object] | None = None
        """Told of the first disk error; takes the whole directory offline."""
        self.on_first_batch: Callable[[PartitionLog], None] | None = None
        """Told when a log that was never flushed gets its first batch: its names want to be made durable."""
        self.on_roll: Callable[[PartitionLog], None] | None = None
        """Told when a segment was closed and wants to be flushed."""
        self.on_truncate: Callable[[int], None] | None = None
        """Told where the log ends after its end was cut."""

    # What there is

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def config(self) -> LogConfig:
        return self._config

    @property
    def segments(self) -> SegmentList:
        """To be read: only the log itself changes it."""
        return self._segments

    @property
    def log_start_offset(self) -> int:
        return self._log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self._log_end_offset

    @property
    def recovery_point(self) -> int:
        """Everything below is on disk, with its names."""
        return self._recovery_point

    @property
    def failure(self) -> str | None:
        """Why the log is offline."""
        return self._failure

    @property
    def is_truncating(self) -> bool:
        """Whether a truncation has begun and not ended: until then nothing can be appended."""
        return self._truncation is not None

    @property
    def is_starting_anew(self) -> bool:
        """Whether that truncation leaves nothing."""
        return self._truncation is not None and self._truncation.fully

    def size_bytes(self) -> int:
        return self._segments.size_bytes()

    def configure(self, config: LogConfig) -> None:
        """Go by other settings from now on."""
        self._config = config

    # Appending

    def append(
        self,
        batch: bytearray | memoryview,
        header: BatchHeader,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        verification: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> Appended:
        """Append one batch as the leader: it gets the next offsets and is stamped in place.

        ``header`` is the batch's own, validated. ``verification`` lets it begin a transaction; ``transaction_version``
        is that of the transaction which a marker ends. Raises the producer's error, or :class:`StorageError`.
        """
        if self._failure is not None or self._truncation is not None:
            raise self._error()
        _, length, _, _, _, attributes, last_offset_delta, _, max_timestamp, producer_id, _, _, _ = header
        marker = None
        if producer_id >= 0:
            if attributes & CONTROL_BIT:
                marker = checked_marker(self.producers, batch, header, transaction_version)
            else:
                duplicate = self.producers.check(header, origin, verification)
                if duplicate is not None:
                    return Appended(duplicate.first_offset, duplicate.last_offset, True, duplicate.timestamp)
        base_offset = self._log_end_offset
        last_offset = base_offset + last_offset_delta
        size_bytes = length + LOG_OVERHEAD_BYTES
        try:
            segment = self._segments.active
            if self._must_roll(segment, size_bytes, last_offset, max_timestamp, now_ms):
                segment = self.roll(now_ms)
            stamp(batch, 0, base_offset, leader_epoch)
            if leader_epoch > self.epochs.latest:
                self.epochs.assign(leader_epoch, base_offset)
            if marker is not None:
                prepare_abort(self.producers, segment, producer_id, marker)
            segment.append(batch, size_bytes, last_offset, max_timestamp)
            self._log_end_offset = last_offset + 1
            if producer_id >= 0:
                record_in_segment(self.producers, segment, header, base_offset, marker)
        except OSError as error:
            raise self.fail(error) from error
        return _new_tuple(Appended, (base_offset, last_offset, False, max_timestamp))

    def begin_epoch(self, leader_epoch: int) -> None:
        """Note that a leader writes from the log end on, before it has written anything (R20).

        An epoch without batches is not missed on disk: a recovery forgets it.
        """
        self.epochs.assign(leader_epoch, self._log_end_offset)

    def append_as_follower(self, batches: Buffer, now_ms: int) -> None:
        """Append whole batches as their leader wrote them: offsets, epochs and gaps are its own; a torn end is left.

        The caller has checked their CRCs. A follower that appends all of a leader's batches has the same files.
        """
        if self._failure is not None or self._truncation is not None:
            raise self._error()
        view = memoryview(batches)
        for position, header in walk(view):
            if header.base_offset < self._log_end_offset:
                raise CorruptMessage(
                    f"{self.name} ends at {self._log_end_offset}, a batch for offset {header.base_offset} came"
                )
            try:
                self._append_placed(view[position : position + header.size_bytes], header, now_ms)
            except OSError as error:
                raise self.fail(error) from error

    def _append_placed(self, batch: memoryview, header: BatchHeader, now_ms: int) -> None:
        marker = read_marker(batch, 0, header) if header.is_control and header.producer_id >= 0 else None
        segment = self._segments.active
        if self._must_roll(segment, header.size_bytes, header.last_offset, header.max_timestamp, now_ms):
            segment = self.roll(now_ms, header.base_offset)
        if header.leader_epoch > self.epochs.latest:
            self.epochs.assign(header.leader_epoch, header.base_offset)
        if marker is not None:
            prepare_abort(self.producers, segment, header.producer_id, marker)
        segment.append(batch, header.size_bytes, header.last_offset, header.max_timestamp)
        self._log_end_offset = header.next_offset
        if header.producer_id >= 0:
            record_in_segment(self.producers, segment, header, header.base_offset, marker)

    # Rolling and flushing

    def _must_roll(self, segment: Segment, size_bytes: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """An empty segment rolls only when the offset does not fit."""
        if last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if not segment.size_bytes:
            if not self._are_names_durable and self.on_first_batch is not None:
                self.on_first_batch(self)
            return False
        return is_due(self._config, self.name, segment, size_bytes, max_timestamp, now_ms)

    def roll(self, now_ms: int, base_offset: int = 0) -> Segment:
        """Close the active segment and begin the next one at the log end, or at ``base_offset`` if that is above."""
        base_offset = max(base_offset, self._log_end_offset)
        old = self._segments.active
        if old.base_offset == base_offset:
            return old
        self.require_online()
        try:
            write_snapshot(self.disk, self.path, base_offset, self.producers.producers.values(), sync=False)
            old.seal()
            old.modified_ms = now_ms
            if not self._are_names_durable:
                # A power cut that took the name of the first segment alone would move the start of the log.
                self.disk.sync_dir(self.path)
                self._are_names_durable = True
            segment = Segment.create(
                self.disk, self.path, base_offset, self.shape, now_ms, initial_bytes=initial_segment_bytes(self._config)
            )
        except OSError as error:
            raise self.fail(error) from error
        self._segments.add(segment)
        if self.on_roll is not None:
            self.on_roll(self)
        return segment

    def names_are_durable(self) -> None:
        """Its directory was synced since the first segment was made."""
        self._are_names_durable = True

    def flushed_to(self, end_offset: int) -> None:
        """Everything below ``end_offset`` was brought to the disk, and the names with it."""
        self.require_online()
        self._are_names_durable = True
        self._recovery_point = max(self._recovery_point, min(end_offset, self._log_end_offset))

    # Reading

    def read(self, offset: int, max_bytes: int, bound: int | None = None) -> Lease | None:
        """The batches from the one that holds ``offset`` on, as a range of a file; the caller gives it back.

        Never a byte of a batch that reaches ``bound`` (an offset; the log end if not given); at least one
        whole batch, and otherwise at most ``max_bytes``, which may cut the last batch. ``None`` when nothing
        lies in between. Raises :class:`OffsetOutOfRange` outside of the log.
        """
        if self._failure is not None:
            raise self._error()
        if not self._log_start_offset <= offset <= self._log_end_offset:
            raise OffsetOutOfRange(
                f"{self.name} holds offsets {self._log_start_offset} to {self._log_end_offset}, {offset} was asked for"
            )
        end = self._log_end_offset if bound is None else min(bound, self._log_end_offset)
        try:
            lease = self._segments.lease(offset, max_bytes, end)
        except OSError as error:
            raise self.fail(error) from error
        return None if lease is None else lease.reports_to(self.fail)

    def aborted_in(self, lease: Lease, start: int, bound: int) -> list[AbortedTransaction]:
        """What a committed reader of this lease has to skip, if it begins at ``start`` and may not reach ``bound``."""
        try:
            return self._segments.aborted_in(lease, start, bound)
        except OSError as error:
            raise self.fail(error) from error

    # Making it shorter at the start

    def advance_log_start(self, offset: int) -> None:
        """Records below ``offset`` are gone for every reader; whole segments below it go with the next retention."""
        self.require_online()
        if offset > self._log_end_offset:
            raise OffsetOutOfRange(f"{self.name} ends at {self._log_end_offset}, its start cannot move to {offset}")
        if offset > self._log_start_offset:
            self._log_start_offset = offset
            self.epochs.truncate_from_start(offset)

    def delete_oldest(self, segment: Segment, now_ms: int) -> Steps:
        """Remove the first segment, unless it went meanwhile; the log starts behind it. Its leases stay readable.

        Its new name is durable before the next segment goes: a disk that kept the second removal and lost the first
        would leave a hole.
        """
        self.require_online()
        if segment is not self._segments.first or len(self._segments) == 1:
            return
        try:
            self.advance_log_start(self._segments[1].base_offset)
            self._segments.remove([segment])
            segment.close()
            segment.rename(DELETED)
            self._delete_later(segment.paths() + rename_snapshot(self.disk, self.path, segment.base_offset), now_ms)
        except OSError as error:
            raise self.fail(error) from error
        yield self.sync_names

    def sync_names(self) -> None:
        """Make the names of the log's files durable. May run on any thread."""
        self._on_disk(partial(self.disk.sync_dir, self.path))

    def _delete_later(self, paths: list[str], now_ms: int) -> None:
        self._pending_deletes.add(paths, now_ms + self._config.file_delete_delay_ms)

    def take_due_paths(self, now_ms: int) -> list[str]:
        """The files whose time has come; the caller removes them, on a thread if there are many."""
        return self._pending_deletes.take_due(now_ms)

    # Making it shorter at the end

    def begin_truncation(self, offset: int, *, fully: bool = False) -> None:
        """Have the log end at ``offset`` for everybody; ``finish_truncation`` cuts the files.

        ``fully`` leaves nothing: the log is empty and starts at ``offset``, wherever that is. In between the recovery
        point, which may have become lower, has to be lowered on disk: what will be written again is not flushed. Until
        the end of it nothing can be appended. A truncation that did not end may be begun again.
        """
        self.require_online()
        if self._swaps:
            raise StorageError(f"{self.name} cannot be truncated while segments are replaced in it")
        unfinished = self._truncation
        if unfinished is not None and unfinished.fully and not fully:
            offset, fully = unfinished.offset, True
        if unfinished is None and not fully and offset >= self._log_end_offset:
            return
        if offset < self._segments.first.base_offset and not fully:
            raise ValueError(f"{self.name} begins above {offset}")
        removed = [one for one in self._segments if fully or one.base_offset > offset]
        self._truncation = Truncation(self.disk, self.path, self.shape, offset, removed, unfinished, fully=fully)
        self._segments.remove(removed)
        for segment in removed:
            segment.close()
        if fully:
            self._segments.add(Segment(self.disk, self.path, offset, self.shape))
            self._log_start_offset = offset
        self._end_at(offset if fully else min(offset, self._log_end_offset))

    def finish_truncation(self, now_ms: int) -> Steps:
        """Cut the files: every batch that reaches the offset goes, so that the log may end below it."""
        truncation = self._truncation
        if truncation is None:
            return
        self.require_online()
        yield partial(self._on_disk, truncation.remove_segments)
        self.require_online()
        yield from self._start_empty(truncation, now_ms) if truncation.fully else self._cut_active(truncation)
        self._end_at(self._segments.active.next_offset)
        self.epochs.truncate_from_end(0 if truncation.fully else self._log_end_offset)
        truncation.prepare_producers(self._segments, self._log_end_offset, self.epochs.save)
        yield partial(self._on_disk, truncation.rebuild_producers)
        self.require_online()
        self.producers.take_over(truncation.producers, self._log_end_offset)
        self._delete_later(truncation.removed_paths, now_ms)
        self._truncation = None

    def forget_empty_epochs(self) -> Steps:
        """Forget epochs under which nothing was written: those that begin at the log end (KAFKA-10706, R28)."""
        self.require_online()
        if self.epochs.entries and self.epochs.entries[-1].start_offset >= self._log_end_offset:
            self.epochs.truncate_from_end(self._log_end_offset)
            yield partial(self._on_disk, self.epochs.save)

    def _start_empty(self, truncation: Truncation, now_ms: int) -> Steps:
        initial_bytes = initial_segment_bytes(self._config)
        yield partial(self._on_disk, partial(truncation.create_only_segment, now_ms, initial_bytes))
        self.require_online()
        assert truncation.first is not None
        self._segments.add(truncation.first)

    def _cut_active(self, truncation: Truncation) -> Steps:
        active = self._segments.active
        self._on_disk(partial(truncation.prepare_cut, active))
        yield partial(self._on_disk, truncation.find_cut)
        self.require_online()
        active.hide_from(truncation.position, truncation.offset)
        yield partial(self._on_disk, truncation.cut_file)
        self.require_online()
        self._on_disk(partial(cut_indexes, active, truncation.offset))

    def _end_at(self, offset: int) -> None:
        self._log_end_offset = offset
        self._log_start_offset = min(self._log_start_offset, offset)
        self._recovery_point = min(self._recovery_point, offset)
        self.cuts += 1
        if self.on_truncate is not None:
            self.on_truncate(offset)

    # Replacing

    def replace(self, new: Sequence[Segment], old: Sequence[Segment], now_ms: int) -> Steps:
        """Swap ``new`` segments, written and sealed under ``.cleaned`` names, in for ``old`` ones (facts 78-80).

        An old segment that retention removed meanwhile is passed over (fact 80). Readers see the new segments as soon
        as their names are safe; ranges out on lease stay readable. Appends and rolls between steps are normal; the log
        cannot be truncated before the end.
        """
        self.require_online()
        swap = Swap(self.disk, self.path, new)
        self._swaps += 1
        try:
            yield partial(self._on_disk, swap.take_names)
            self.require_online()
            present = self._segments.present(old)
            self._segments.replace(present, new)
            for segment in present:
                segment.close()
            yield partial(self._on_disk, partial(swap.rename_old, present))
            self.require_online()
            self._delete_later([path for segment in present for path in segment.paths()], now_ms)
            self._on_disk(swap.take_final_names)
            yield partial(self._on_disk, partial(swap.rename_snapshots, present))
            self.require_online()
            self._delete_later(swap.renamed_snapshots, now_ms)
        finally:
            self._swaps -= 1
            swap.close()

    # Being moved to another directory

    def skip_to(self, offset: int, now_ms: int) -> None:
        """Have the log end at ``offset``, with nothing before it: in the log that is copied compaction left nothing."""
        self.roll(now_ms, offset)
        self._log_end_offset = max(self._log_end_offset, offset)

    def take_place_of(self, copied: "PartitionLog") -> None:
        """Go on for the log that this one is a copy of, up to its very end.

        What its producers are is known there alone: their batches may be deleted, their verifications are in no file.
        So is the epoch of a leader that has not written yet.
        """
        self.producers = copied.producers
        for epoch, start_offset in copied.epochs.entries:
            self.epochs.assign(epoch, start_offset)
        self._config = copied.config
        try:
            write_snapshot(self.disk, self.path, self._log_end_offset, self.producers.producers.values(), sync=False)
        except OSError as error:
            raise self.fail(error) from error

    # Going offline and closing

    def fail(self, error: OSError) -> StorageError:
        """A disk error: stop using the log, and tell its directory. Returns the error to raise. Any thread may call.

        Where only descriptors are missing the log stays online, and the caller may try again.
        """
        if is_temporary(error):
            logger.warning("%s: %s: it can be tried again", self.name, error)
            return StorageError(f"{self.name} cannot open files for now: {error}")
        if self._failure is None:
            self.take_offline(f"{self.name} is offline: {error}")
            if self.on_failure is not None:
                self.on_failure(error)
        return self._error()

    def take_offline(self, reason: str) -> None:
        """Stop using the log; the first reason stays. Any thread may call."""
        self._failure = self._failure or reason

    def require_online(self) -> None:
        """Raise :class:`StorageError` once the log is offline: nothing is tried a second time."""
        if self._failure is not None:
            raise self._error()

    def _error(self) -> StorageError:
        return StorageError(self._failure or f"{self.name} is being truncated to {self._log_end_offset}")

    def _on_disk(self, work: Step) -> None:
        """Do it; a disk error fails the log. May run on any thread."""
        try:
            work()
        except OSError as error:
            raise self.fail(error) from error

    def close(self) -> None:
        """Let go of every file, changing none: what is on disk is what a crash would leave.

        Nobody is told of anything any more: a log and whoever is told would hold each other in memory.
        """
        for segment in self._segments:
            segment.close()
        self.epochs.close()
        self.on_first_batch = self.on_roll = self.on_truncate = self.shape.rebuilds.fail = None
