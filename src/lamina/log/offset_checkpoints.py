"""What a log directory remembers of its partitions across a stop: the four offset checkpoints.

Owns their contents in memory, which of them has to be written when partitions come and go, and that what is older never
replaces what is newer on disk, whichever thread is faster. Must not know whether the directory is online: it says so by
not asking.
"""

import logging
import threading
from collections.abc import Container, Iterable, Mapping

from lamina.log import checkpoints
from lamina.log.checkpoints import CheckpointError, read_offsets, write_offsets
from lamina.log.files import Disk
from lamina.log.partition_log import PartitionLog
from lamina.topic_partition import TopicPartition


class Contents(dict[TopicPartition, int]):
    """A checkpoint file as it was at one time; a higher number is later."""

    __slots__ = ("number",)

    def __init__(self, offsets: Mapping[TopicPartition, int], number: int) -> None:
        super().__init__(offsets)
        self.number = number


Checkpoints = dict[str, Contents]
"""Contents of checkpoint files by their names."""

Logs = Mapping[TopicPartition, PartitionLog]

logger = logging.getLogger(__name__)


class OffsetCheckpoints:
    def __init__(self, disk: Disk, path: str, *, is_readable: bool = True) -> None:
        """Of a directory that is not readable nothing is known."""
        self._disk = disk
        self._path = path
        self._is_readable = is_readable
        self.recovery_points = self._read(checkpoints.RECOVERY_POINT)
        self.log_starts = self._read(checkpoints.LOG_START)
        self.high_watermarks = self._read(checkpoints.HIGH_WATERMARK)
        self.cleaner_offsets = self._read(checkpoints.CLEANER)
        self._owed: Checkpoints = {}
        """What has to be on disk before anything relies on it, and is not, or not known to be."""
        self._paying = threading.Lock()
        self._taken = 0
        """How often contents were taken to be written."""
        self._written: dict[str, int] = {}
        """The number of what is in each file."""
        self._writing = threading.Lock()

    def _read(self, name: str) -> dict[TopicPartition, int]:
        if not self._is_readable:
            return {}
        try:
            return read_offsets(self._disk, f"{self._path}/{name}")
        except CheckpointError as error:
            logger.warning("%s/%s is taken for empty: %s", self._path, name, error)
            return {}

    def write(self, changed: Checkpoints) -> None:
        """Write some of the four files whole, unless newer contents are there already. May run on any thread."""
        for name, contents in changed.items():
            with self._writing:
                if contents.number < self._written.get(name, 0):
                    continue
                write_offsets(self._disk, f"{self._path}/{name}", contents)
                self._written[name] = contents.number
            with self._paying:
                if self._owed.get(name) is contents:
                    del self._owed[name]

    def _to_write(self, name: str, offsets: dict[TopicPartition, int], *, is_owed: bool = False) -> Checkpoints:
        """The file as it is now. What is owed stays so until this, or something newer, is on disk."""
        self._taken += 1
        contents = Contents(offsets, self._taken)
        with self._paying:
            if is_owed or name in self._owed:
                self._owed[name] = contents
        return {name: contents}

    def _with_owed(self, changed: Checkpoints) -> Checkpoints:
        """Also what an earlier attempt could not write: it must not be taken for written."""
        with self._paying:
            return self._owed | changed

    def of_recovery_points(self, logs: Logs) -> Checkpoints:
        """The recovery points as they are now, to be written."""
        self.recovery_points |= {key: log.recovery_point for key, log in logs.items()}
        return self._to_write(checkpoints.RECOVERY_POINT, self.recovery_points)

    def of_log_starts(self, logs: Logs) -> Checkpoints:
        """Only logs that start above their first segment's base need to be remembered (formats.md §2.5)."""
        for key, log in logs.items():
            if log.is_truncating:
                continue  # What was written down ahead of the truncation has to stay until its end.
            self.log_starts.pop(key, None)
            if log.log_start_offset > log.segments.first.base_offset:
                self.log_starts[key] = log.log_start_offset
        return self._to_write(checkpoints.LOG_START, self.log_starts)

    def of_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> Checkpoints:
        self.high_watermarks |= high_watermarks
        return self._to_write(checkpoints.HIGH_WATERMARK, self.high_watermarks)

    def of_cleaner_offsets(
        self, offsets: Mapping[TopicPartition, int], existing: Container[TopicPartition]
    ) -> Checkpoints:
        """Fact 89: an update keeps only partitions that still exist."""
        known = self.cleaner_offsets | dict(offsets)
        self.cleaner_offsets = {key: offset for key, offset in known.items() if key in existing}
        return self._to_write(checkpoints.CLEANER, self.cleaner_offsets)

    def log_start_at(self, key: TopicPartition, offset: int) -> Checkpoints:
        """A log start that has to be written ahead of what makes it true."""
        self.log_starts[key] = offset
        return self._to_write(checkpoints.LOG_START, self.log_starts, is_owed=True)

    def lowered_to(self, log: PartitionLog) -> Checkpoints:
        """Have no checkpoint speak of anything above the end of a log that is cut. Returns what has to be written."""
        key, end_offset = (log.topic, log.partition), log.log_end_offset
        cleaned_to = min(end_offset, log.segments.active.base_offset)  # Fact 28: what is written again is dirty.
        changed: Checkpoints = {}
        for name, offsets, limit in (
            (checkpoints.RECOVERY_POINT, self.recovery_points, end_offset),
            (checkpoints.LOG_START, self.log_starts, end_offset),
            (checkpoints.HIGH_WATERMARK, self.high_watermarks, end_offset),
            (checkpoints.CLEANER, self.cleaner_offsets, cleaned_to),
        ):
            if offsets.get(key, 0) > limit:
                offsets[key] = limit
                changed |= self._to_write(name, offsets, is_owed=True)
        return self._with_owed(changed)

    def without(self, partitions: Iterable[TopicPartition]) -> Checkpoints:
        """Drop what is said of partitions that are gone or new. Returns the checkpoints that said something.

        They have to be written before a partition of that name is made: an old one must not speak for it.
        """
        gone, said = frozenset(partitions), Checkpoints()
        for name, offsets in (
            (checkpoints.RECOVERY_POINT, self.recovery_points),
            (checkpoints.LOG_START, self.log_starts),
            (checkpoints.HIGH_WATERMARK, self.high_watermarks),
            (checkpoints.CLEANER, self.cleaner_offsets),
        ):
            known = gone & offsets.keys()
            for key in known:
                del offsets[key]
            if known:
                said |= self._to_write(name, offsets, is_owed=True)
        return self._with_owed(said)
