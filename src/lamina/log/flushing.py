"""Making a log safe on disk: which files, in which order, and who is waiting for it.

A flush is begun and finished by the log's own thread and run by any other: it knows paths, not state. Only
when all of it returned does the recovery point move, so that nothing above it is believed after a crash
without being checked. A failed flush fails the log: the page cache may have dropped the data, so trying again
could succeed without having written anything. Must not know threads; the flusher is given a way to run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from lamina.errors import StorageError
from lamina.log.due_waiters import DueWaiters
from lamina.log.epochs import LeaderEpochs
from lamina.log.files import Disk, sync_file
from lamina.log.identity import PARTITION_METADATA
from lamina.log.index_pair import Run
from lamina.log.partition_log import PartitionLog
from lamina.log.snapshots import snapshot_offsets, snapshot_path, write_snapshot

Waiter = Callable[[StorageError | None], None]


@dataclass(slots=True)
class Flush:
    """The files that make ``[recovery point, end_offset)`` of a log durable, and the names with them."""

    disk: Disk
    directory: str
    end_offset: int
    paths: list[str]
    epochs: LeaderEpochs

    def run(self) -> None:
        """Sync every file, then the directory. A file that retention took away meanwhile needs no syncing.

        The leader epochs of what is flushed are written first: below the recovery point no batch is read for them.
        """
        self.epochs.save()
        for path in self.paths:
            sync_file(self.disk, path)
        self.disk.sync_dir(self.directory)


def begin_flush(log: PartitionLog, end_offset: int) -> Flush | None:
    """What has to be synced up to ``end_offset``; ``None`` when all of it is."""
    end_offset = min(end_offset, log.log_end_offset)
    if end_offset <= log.recovery_point:
        return None
    return Flush(log.disk, log.path, end_offset, _paths(log, end_offset), log.epochs)


def _paths(log: PartitionLog, end_offset: int) -> list[str]:
    """All that may not be safe yet. The segment of the last flushed batch is part of it: it may be closed since."""
    segments = log.segments.between(log.recovery_point - 1, end_offset)
    paths = [path for segment in segments for path in segment.paths()]
    paths += [
        snapshot_path(log.path, base) for segment in segments if (base := segment.base_offset) >= log.recovery_point
    ]
    if not log.recovery_point:
        # Its first flush: from now on the directory must say whose it is.
        paths.append(f"{log.path}/{PARTITION_METADATA}")
    return [*paths, snapshot_path(log.path, end_offset), log.epochs.path]


def flush(log: PartitionLog, end_offset: int | None = None) -> None:
    """Begin, run and finish in one go, on this thread."""
    log.require_online()
    begun = begin_flush(log, log.log_end_offset if end_offset is None else end_offset)
    if begun is None:
        return
    try:
        begun.run()
    except OSError as error:
        raise log.fail(error) from error
    log.flushed_to(begun.end_offset)


def close_cleanly(log: PartitionLog) -> None:
    """Flush everything, write the producers' state at the log end, trim the indexes and let go of the files."""
    if log.failure is not None:
        log.close()
        return
    try:
        log.segments.active.seal()
        if log.log_end_offset > max(snapshot_offsets(log.disk, log.path), default=0):
            write_snapshot(log.disk, log.path, log.log_end_offset, log.producers.producers.values(), sync=True)
        # Indexes are trimmed when a segment closes, so its files are synced even if its batches were before.
        begun = Flush(log.disk, log.path, log.log_end_offset, _paths(log, log.log_end_offset + 1), log.epochs)
        begun.run()
    except OSError as error:
        raise log.fail(error) from error
    log.flushed_to(begun.end_offset)
    log.close()


class Flusher:
    """Flushes one log, one flush at a time. Requests that come while one runs share the next: group commit."""

    def __init__(self, log: PartitionLog, run: Run, due: DueWaiters) -> None:
        """``due`` tells whoever waited: what they do is no part of a flush, and the next one waits for none of it."""
        self._log = log
        self._run = run
        self.due = due
        self._running: Flush | None = None
        self._wanted = 0
        self._waiters: list[tuple[int, Waiter]] = []
        log.shape.rebuilds.run, log.shape.rebuilds.fail = run, log.fail
        log.on_first_batch = self._began
        log.on_roll = self._rolled
        log.on_truncate = self._truncated

    def flush_to(self, end_offset: int, waiter: Waiter | None = None) -> None:
        """Make everything below ``end_offset`` durable; ``waiter`` is told when the fsync that covers it returned."""
        if waiter is not None:
            if self._log.failure is not None:
                self.due.tell_at_once(self._log.name, waiter, StorageError(self._log.failure))
                return
            if end_offset <= self._log.recovery_point:
                self.due.tell_at_once(self._log.name, waiter, None)
                return
            self._waiters.append((end_offset, waiter))
        self._wanted = max(self._wanted, end_offset)
        self._start()

    def take_waiters_of(self, other: "Flusher") -> None:
        """The log of the other one goes on in this one's: what is waited for there is flushed here."""
        waiters, other._waiters = other._waiters, []
        for end_offset, waiter in waiters:
            self.flush_to(end_offset, waiter)
        if other._wanted > self._log.recovery_point:
            self.flush_to(other._wanted)

    def _began(self, log: PartitionLog) -> None:
        """Sync the names of a new log ahead of its first roll, which would have to wait for it."""
        log.on_first_batch = None

        def done(error: OSError | None) -> None:
            if error is not None:
                log.fail(error)
            else:
                log.names_are_durable()

        self._run(partial(log.disk.sync_dir, log.path), done)

    def _rolled(self, log: PartitionLog) -> None:
        self.flush_to(log.log_end_offset)

    def _truncated(self, end_offset: int) -> None:
        """A running flush says nothing of what is written again above ``end_offset``."""
        if self._running is not None:
            self._running.end_offset = min(self._running.end_offset, end_offset)
        self._wanted = min(self._wanted, end_offset)
        cut = [waiter for wanted, waiter in self._waiters if wanted > end_offset]
        self._waiters = [entry for entry in self._waiters if entry[0] <= end_offset]
        error = StorageError(f"{self._log.name} was cut to {end_offset} while its flush was waited for")
        self.due.tell(self._log.name, cut, error)

    def _start(self) -> None:
        if self._running is not None:
            return
        if self._log.failure is not None:
            self._refuse(StorageError(self._log.failure))
        else:
            self._running = begin_flush(self._log, self._wanted)
            if self._running is not None:
                self._run(self._running.run, self._done)

    def _done(self, error: OSError | None) -> None:
        running, self._running = self._running, None
        assert running is not None
        try:
            if error is not None:
                raise self._log.fail(error)
            self._log.flushed_to(running.end_offset)
        except StorageError as failure:
            self._refuse(failure)
            return
        ready = [waiter for end_offset, waiter in self._waiters if end_offset <= self._log.recovery_point]
        self._waiters = [entry for entry in self._waiters if entry[0] > self._log.recovery_point]
        self.due.tell(self._log.name, ready, None)
        self._start()

    def _refuse(self, failure: StorageError) -> None:
        waiters, self._waiters = self._waiters, []
        self.due.tell(self._log.name, [waiter for _, waiter in waiters], failure)
