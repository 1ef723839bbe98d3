"""The leader epochs of a log: which leader began to write where.

Owns ``leader-epoch-checkpoint`` (formats.md §2.5). Epochs and start offsets both increase. Must not know who
leads: the partition says so with each append.
"""

from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from lamina.log.checkpoints import CheckpointError, format_lines, parse_lines
from lamina.log.files import Disk, read_file, write_new_file

FILE_NAME = "leader-epoch-checkpoint"


class EpochStart(NamedTuple):
    epoch: int
    start_offset: int


class LeaderEpochs:
    __slots__ = ("_disk", "entries", "latest", "path", "saved")

    def __init__(self, disk: Disk, directory: str, entries: list[EpochStart]) -> None:
        self.entries = entries
        self.latest = self.saved = entries[-1].epoch if entries else -1
        """The newest epoch, and the newest that the checkpoint has: one without batches need not be in it."""
        self._disk = disk
        self.path = f"{directory}/{FILE_NAME}"

    @classmethod
    def load(cls, disk: Disk, directory: str) -> "LeaderEpochs":
        """What the checkpoint says; one that is missing or bad counts as empty, the log's batches tell again."""
        try:
            entries = parse_epochs(read_file(disk, f"{directory}/{FILE_NAME}"))
        except (FileNotFoundError, CheckpointError):
            entries = []
        return cls(disk, directory, entries)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that ``epoch`` writes from ``start_offset`` on; ``True`` if that was news. Written by ``save``."""
        if epoch <= self.latest:
            return False
        while self.entries and self.entries[-1].start_offset >= start_offset:
            self.entries.pop()
        self.entries.append(EpochStart(epoch, start_offset))
        self.latest = epoch
        return True

    def begin(self, epoch: int, start_offset: int) -> None:
        """Note it and write the checkpoint, which is synced by the flush that covers the batch."""
        known = list(self.entries)
        self.assign(epoch, start_offset)
        if self.saved < self.latest:
            try:
                self.save(sync=False)
            except OSError:
                self._set(known)
                raise

    def save(self, *, sync: bool = True) -> None:
        """Write the checkpoint."""
        write_new_file(self._disk, self.path, format_epochs(self.entries), sync=sync)
        self.saved = self.latest

    def save_unless(self, checkpointed: list[EpochStart]) -> None:
        """Write the checkpoint, unless it has just these entries: the flush that covers their batches syncs it.

        One without entries may be missing or torn, which says the same: it does not wait for the disk.
        """
        if checkpointed and self.entries == checkpointed:
            self.saved = self.latest
        else:
            self.save(sync=bool(self.entries))

    def saving(self) -> Callable[[], None]:
        """Write the checkpoint as it is now, whatever comes: for any thread."""
        return partial(write_new_file, self._disk, self.path, format_epochs(self.entries))

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
        self._replace([entry for entry in self.entries if entry.start_offset < end_offset])

    def forget_from(self, end_offset: int) -> None:
        """The same without writing it: the caller has ``saving`` done."""
        self._set([entry for entry in self.entries if entry.start_offset < end_offset])

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that end at or below ``start_offset``; the one that holds it now begins there."""
        number = bisect_right(self.entries, start_offset, key=lambda entry: entry.start_offset)
        if number:
            first = EpochStart(self.entries[number - 1].epoch, start_offset)
            # Unsynced: a log start that is moved again after a crash cuts the epochs again.
            self._replace([first, *self.entries[number:]], sync=False)

    def clear(self) -> None:
        self._replace([])

    def _replace(self, entries: list[EpochStart], *, sync: bool = True) -> None:
        if entries != self.entries:
            self._set(entries)
            self.save(sync=sync)

    def _set(self, entries: list[EpochStart]) -> None:
        self.entries = entries
        self.latest = entries[-1].epoch if entries else -1
        self.saved = min(self.saved, self.latest)


def format_epochs(entries: list[EpochStart]) -> bytes:
    return format_lines(f"{entry.epoch} {entry.start_offset}" for entry in entries)


def parse_epochs(data: bytes) -> list[EpochStart]:
    """The entries of a checkpoint; raises :class:`CheckpointError` for anything but increasing epochs.

    It is written unsynced on the append path, so its last line may be torn: one without its end is not believed.
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
