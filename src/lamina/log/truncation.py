"""The work on files that truncating a log takes, from the list of segments that go to the producers that are left.

Owns the order on disk, so that a crash at any moment leaves a log without holes: segments go from the end, each name
made durable before the next goes. Works on names, sizes and segments of its own, so that each part may run on any
thread while the log is read. Must not know the log, nor its checkpoints, which have been lowered before.
"""

from collections.abc import Callable

from lamina.errors import CorruptMessage
from lamina.log.files import TEMPORARY, Disk, File, copy_file
from lamina.log.index_pair import IndexShape
from lamina.log.leftovers import DELETED
from lamina.log.producer_replay import rebuild_producers
from lamina.log.producer_states import ProducerStates
from lamina.log.scan import headers
from lamina.log.segment import LOG, Segment, cut_file
from lamina.log.segment_list import SegmentList
from lamina.log.snapshots import snapshot_offsets, snapshot_path


class Truncation:
    """One truncation to ``offset``; ``fully`` where nothing is to be left below it either.

    ``removed`` segments are out of the log already. What an ``unfinished`` one did not get done is done too.
    """

    def __init__(
        self,
        disk: Disk,
        directory: str,
        shape: IndexShape,
        offset: int,
        removed: list[Segment],
        unfinished: "Truncation | None",
        *,
        fully: bool,
    ) -> None:
        self.offset = offset
        self.fully = fully
        self.removed_paths: list[str] = []
        """Where the files of removed segments are, once they have other names."""
        self.producers = ProducerStates()
        """What is left of them, in the end."""
        self._disk = disk
        self._directory = directory
        self._shape = shape
        self._removed = removed
        if unfinished is not None:
            self._removed = removed + unfinished._removed
            self.removed_paths = unfinished.removed_paths
        self.position = 0
        """Where the file of the last segment is cut, once that is found."""
        self.first: Segment | None = None
        """The only segment of a log that was truncated fully, once it is made."""
        self._path = ""
        self._size_bytes = self._near = 0
        self._replay: Callable[[], None] | None = None

    # The segments above the offset

    def remove_segments(self) -> None:
        """Rename them away, the last one first: a crash in between leaves a longer log, never a hole."""
        self._removed.sort(key=lambda segment: segment.base_offset)
        while self._removed:
            segment = self._removed[-1]
            # One that was renamed before an interruption is not there any more.
            if segment.suffix != DELETED and self._disk.exists(segment.path(LOG)):
                segment.rename(DELETED)
                self.removed_paths += segment.paths()
            self._disk.unlink(snapshot_path(self._directory, segment.base_offset))
            self._disk.sync_dir(self._directory)
            self._removed.pop()

    # The segment that holds it

    def prepare_cut(self, active: Segment) -> None:
        """Note what there is to be cut, and what an index that is at hand says of the place."""
        self._path, self._size_bytes = active.path(), active.size_bytes
        self._near = active.position_near(self.offset - 1)

    def find_cut(self) -> None:
        """Find the first batch that reaches the offset, in a file that may be cut."""
        self._own_file()
        file = self._disk.open(self._path)
        try:
            try:
                self.position = self._first_reaching(file, self._near)
            except CorruptMessage:
                # The index may be untrue; the log is not.
                self.position = self._first_reaching(file, 0)
        finally:
            file.close()

    def _first_reaching(self, file: File, start: int) -> int:
        for position, header in headers(file, start, self._size_bytes):
            if header.last_offset >= self.offset:
                if position == start > 0:
                    raise CorruptMessage(f"an index of {self._path} points behind the batch that it was asked for")
                return position
        return self._size_bytes

    def _own_file(self) -> None:
        """Give the segment that is cut a file of its own: a backup may have linked it while it was closed.

        The lowered recovery point is on disk by now, so a backup either linked it before, and this sees it, or sees
        the recovery point and does not keep its link.
        """
        path = self._path
        if self._disk.is_shared(path):
            copy_file(self._disk, path, path + TEMPORARY, self._size_bytes)
            self._disk.rename(path + TEMPORARY, path)
            self._disk.sync_dir(self._directory)

    def cut_file(self) -> None:
        """Cut the file there. Synced, so that no batch from before the cut can follow one that is written after it."""
        cut_file(self._disk, self._path, self.position)

    def create_only_segment(self, now_ms: int, initial_bytes: int) -> None:
        """Make the only segment of an empty log."""
        for snapshot in snapshot_offsets(self._disk, self._directory):
            # What the log knew of its producers went with their batches: no snapshot may bring it back.
            self._disk.unlink(snapshot_path(self._directory, snapshot))
        self.first = Segment.create(
            self._disk, self._directory, self.offset, self._shape, now_ms, initial_bytes=initial_bytes
        )
        self._disk.sync_dir(self._directory)

    # What its batches say

    def prepare_producers(self, segments: SegmentList, end_offset: int, save_epochs: Callable[[], None]) -> None:
        """Note what ``rebuild_producers`` has to read."""
        extents = [segment.extent() for segment in segments]
        shape = self._shape.for_another_thread()

        def replay() -> None:
            save_epochs()
            for snapshot in snapshot_offsets(self._disk, self._directory):
                if snapshot > end_offset:
                    self._disk.unlink(snapshot_path(self._directory, snapshot))
            left = SegmentList(
                [
                    Segment.of_extent(self._disk, self._directory, extent, shape, is_written=extent is extents[-1])
                    for extent in extents
                ]
            )
            rebuild_producers(self._disk, self._directory, left, self.producers, end_offset)
            for segment in left:
                segment.close()

        self._replay = replay

    def rebuild_producers(self) -> None:
        """Find out what producers have written to what is left, and write the epochs of it down."""
        assert self._replay is not None
        self._replay()
