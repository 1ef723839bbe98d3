"""The leader epochs of a log: which leader began to write where.

Owns ``leader-epoch-checkpoint`` (formats.md §2.5). Epochs and start offsets both increase. An epoch counts in memory at
once; the file may lag as long as it tells of every batch below the recovery point, for recovery reads the batches above
it. So flushes write it, and a clean stop, on their threads. Must not know who leads: the partition says so with each
append.
"""

import threading
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from lamina.log.checkpoints import CheckpointError, format_lines, parse_lines
from lamina.log.files import Disk, read_file, write_temporary

FILE_NAME = "leader-epoch-checkpoint"


class EpochStart(NamedTuple):
    epoch: int
    start_offset: int


class LeaderEpochs:
    __slots__ = ("_closing", "_disk", "_is_closed", "_writing", "_written", "entries", "latest", "path")

    def __init__(self, disk: Disk, directory: str, entries: list[EpochStart]) -> None:
        self.entries = entries
        """Replaced when it changes: a thread that writes the checkpoint takes it as it is then."""
        self.latest = entries[-1].epoch if entries else -1
        self.path = f"{directory}/{FILE_NAME}"
        self._disk = disk
        self._written: list[EpochStart] | None = None
        """What the checkpoint says; ``None`` where it is missing or bad."""
        self._writing = threading.Lock()
        self._closing = threading.Lock()
        self._is_closed = False

    @classmethod
    def load(cls, disk: Disk, directory: str) -> "LeaderEpochs":
        """What the checkpoint says; one that is missing or bad counts as empty, the log's batches tell again."""
        try:
            epochs = cls(disk, directory, parse_epochs(read_file(disk, f"{directory}/{FILE_NAME}")))
        except (FileNotFoundError, CheckpointError):
            return cls(disk, directory, [])
        epochs._written = epochs.entries
        return epochs

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that ``epoch`` writes from ``start_offset`` on, unless that is known."""
        if epoch > self.latest:
            number = bisect_left(self.entries, start_offset, key=lambda entry: entry.start_offset)
            self._set([*self.entries[:number], EpochStart(epoch, start_offset)])

    def save(self, *, sync: bool = True) -> None:
        """Write the checkpoint as it is now, unless it says so already. Any thread may, also while another does.

        Its name is as durable as the directory's others: a power cut before those are synced leaves the old file.
        """
        with self._writing:
            entries = self.entries
            if self._is_closed or self._written == entries:
                return
            temporary = write_temporary(self._disk, self.path, format_epochs(entries), sync=sync)
            with self._closing:
                if self._is_closed:
                    return
                self._disk.rename(temporary, self.path)
            self._written = entries

    def close(self) -> None:
        """Write nothing any more: another log may have this directory's name soon. Waits for a rename at most."""
        with self._closing:
            self._is_closed = True

    def epoch_at(self, offset: int) -> int:
        """The epoch that wrote ``offset``; -1 when the log does not know."""
        number = bisect_right(self.entries, offset, key=lambda entry: entry.start_offset)
        return self.entries[number - 1].epoch if number else -1

    def end_of(self, epoch: int, log_end_offset: int) -> EpochStart:
        """The largest known epoch at or below ``epoch`` and where it ends: what OffsetForLeaderEpoch answers."""
        if epoch < 0 or not self.entries:
            return EpochStart(-1, -1)
        if epoch == self.latest:
            return EpochStart(epoch, log_end_offset)
        if epoch > self.latest:
            return EpochStart(-1, -1)
        number = bisect_right(self.entries, epoch, key=lambda entry: entry.epoch)
        if number == 0:
            return EpochStart(epoch, self.entries[0].start_offset)
        return EpochStart(self.entries[number - 1].epoch, self.entries[number].start_offset)

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that begin at or above ``end_offset``."""
        self._set([entry for entry in self.entries if entry.start_offset < end_offset])

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that end at or below ``start_offset``; the one that holds it now begins there."""
        number = bisect_right(self.entries, start_offset, key=lambda entry: entry.start_offset)
        if number:
            self._set([EpochStart(self.entries[number - 1].epoch, start_offset), *self.entries[number:]])

    def _set(self, entries: list[EpochStart]) -> None:
        self.entries = entries
        self.latest = entries[-1].epoch if entries else -1


def format_epochs(entries: list[EpochStart]) -> bytes:
    return format_lines(f"{entry.epoch} {entry.start_offset}" for entry in entries)


def parse_epochs(data: bytes) -> list[EpochStart]:
    """The entries of a checkpoint; raises :class:`CheckpointError` for anything but increasing epochs.

    It may have been written unsynced, so its last line may be torn: one without its end is not believed.
    """
    if data and not data.endswith(b"\n"):
        raise CheckpointError("a leader epoch checkpoint ends inside a line")
    entries: list[EpochStart] = []
    for line in parse_lines(data, fields=2):
        entry = EpochStart(int(line[0]), int(line[1]))
        if entries and (entry.epoch <= entries[-1].epoch or entry.start_offset <= entries[-1].start_offset):
            raise CheckpointError(f"epoch {entry.epoch} at {entry.start_offset} does not follow the line before it")
        entries.append(entry)
    return entries
