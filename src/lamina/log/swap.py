"""The work on files that putting rewritten segments in the place of others takes (facts 78-80).

Owns the order on disk; ``leftovers`` owns what it means when it is interrupted. The directory is synced after all
that the next part relies on, so that no reordering of names by the disk can lose a batch or bring one back.
Must not know the log, nor why segments are replaced.
"""

from collections.abc import Sequence

from lamina.log.files import Disk, File, sync_file
from lamina.log.leftovers import CLEANED, DELETED, SWAP
from lamina.log.segment import LOG, Segment
from lamina.log.snapshots import snapshot_path


def remove_earlier_attempts(disk: Disk, directory: str) -> None:
    """Remove ``.cleaned`` files before new ones are written: after a crash they would undo a later swap (fact 82)."""
    for entry in disk.scan(directory):
        if entry.name.endswith(CLEANED) and not entry.is_dir:
            disk.unlink(f"{directory}/{entry.name}")


def rename_snapshot(disk: Disk, directory: str, offset: int) -> list[str]:
    """Rename the producer snapshot at ``offset`` away, if there is one. Returns its new path."""
    path = snapshot_path(directory, offset)
    if not disk.exists(path):
        return []
    disk.rename(path, path + DELETED)
    return [path + DELETED]


class Swap:
    """``new`` segments, written and sealed under ``.cleaned`` names, and the names that they get one after the other.

    All but ``take_final_names`` may run on any thread: the segments are not read yet, or not any more.
    """

    def __init__(self, disk: Disk, directory: str, new: Sequence[Segment]) -> None:
        for segment in new:
            if segment.suffix != CLEANED:
                raise ValueError(f"{segment.path(LOG)} was not written under a {CLEANED} name")
        self._disk = disk
        self._directory = directory
        self._new = sorted(new, key=lambda segment: segment.base_offset)
        self._names: File | None = None
        self.renamed_snapshots: list[str] = []

    def take_names(self) -> None:
        """Make the new segments durable under ``.swap`` names: from here on a crash leaves them in place."""
        # Held to the end: once names have changed, nothing may fail because no descriptor is left.
        self._names = self._disk.open_dir(self._directory)
        for segment in self._new:
            for path in segment.paths():
                sync_file(self._disk, path)
                self._disk.set_modified_ms(path, segment.modified_ms)
        self._sync_names()
        for segment in reversed(self._new):
            segment.rename(SWAP)
            self._sync_names()

    def rename_old(self, old: Sequence[Segment]) -> None:
        """Take the names of the segments that were replaced away."""
        for segment in old:
            segment.rename(DELETED)
        self._sync_names()

    def take_final_names(self) -> None:
        """Readers open the new segments by their names, so they change where the log is read."""
        for segment in self._new:
            segment.rename("")

    def rename_snapshots(self, old: Sequence[Segment]) -> None:
        """Make the final names durable. A snapshot goes with its segment, unless a new segment begins there."""
        self._sync_names()
        kept = {segment.base_offset for segment in self._new}
        for segment in old:
            if segment.base_offset not in kept:
                self.renamed_snapshots += rename_snapshot(self._disk, self._directory, segment.base_offset)

    def _sync_names(self) -> None:
        assert self._names is not None
        self._names.fsync()

    def close(self) -> None:
        if self._names is not None:
            self._names.close()
