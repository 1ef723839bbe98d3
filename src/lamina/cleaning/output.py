"""Writing a cleaned segment: its log, both indexes and its transaction index, under names of one attempt.

Owns the files of one group in the pass folder, from the first byte to the last, and to the fsync where that is the
job's. The names in the partition's directory are the broker's to make. Must not know which batches stay.
"""

from collections.abc import Sequence
from struct import Struct

import numpy as np

from lamina.cleaning.contract import AbortedEntry, OutputFile, OutputGroup, Plan, SourceSegment
from lamina.cleaning.kernels.index_entries import (
    INDEX_STATE,
    LARGEST_OFFSET,
    LARGEST_TIMESTAMP,
    LAST_TIMESTAMP,
    OFFSET_ENTRIES,
    TIME_ENTRIES,
    index_batches,
)
from lamina.cleaning.limits import check_free_space
from lamina.log.files import Bytes, Disk, File, write_fully
from lamina.log.index_pair import INDEX, TIME_INDEX
from lamina.log.segment import ABORTED_INDEX, LOG
from lamina.log.transaction_index import AbortedTransaction, pack_aborted
from lamina.records.checksum import crc32c
from lamina.records.columns.headers import Rows

_OFFSET_ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRY = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
_OFFSET_ENTRY_BYTES = Struct(">ii").size
_TIME_ENTRY_BYTES = Struct(">qi").size


class SegmentWriter:
    """The new segment of one group."""

    def __init__(self, disk: Disk, plan: Plan, sources: Sequence[SourceSegment], attempt: str) -> None:
        self._disk = disk
        self._plan = plan
        self._sources = sources
        self.base_offset = sources[0].base_offset
        self._stem = f"{self.base_offset:020d}.{plan.plan_id}.{attempt}"
        self._log: File | None = self._create(LOG)
        self._crc = 0
        self._files: list[OutputFile] = []
        self.size_bytes = 0
        self._state = np.zeros(INDEX_STATE, np.int64)
        self._state[[LARGEST_TIMESTAMP, LAST_TIMESTAMP]] = -1
        self._offsets = np.empty((plan.segment_index_bytes // _OFFSET_ENTRY_BYTES, 2), np.int64)
        self._times = np.empty((plan.segment_index_bytes // _TIME_ENTRY_BYTES, 2), np.int64)

    def _path(self, extension: str) -> str:
        return f"{self._plan.pass_folder}/{self._stem}{extension}"

    def _create(self, extension: str) -> File:
        file = self._disk.open(self._path(extension), create=True)
        file.truncate(0)
        return file

    def write(self, data: Bytes, batches: Rows) -> None:
        """Append whole batches; of each, ``batches`` says position, size, last offset and max timestamp."""
        assert self._log is not None
        check_free_space(self._disk, self._plan, len(data))
        write_fully(self._log, data, self.size_bytes)
        self._crc = crc32c(data, self._crc)
        self.size_bytes += len(data)
        index_batches(batches, self._plan.index_interval_bytes, self._state, self._offsets, self._times)

    def finish(self, aborted: Sequence[AbortedEntry]) -> OutputGroup:
        """Write the indexes, and give everything the last source's time (fact 47)."""
        assert self._log is not None
        self._close(LOG, self._log, self.size_bytes, self._crc)
        self._log = None
        self._write_small(INDEX, self._offset_entries())
        self._write_small(TIME_INDEX, self._time_entries())
        if aborted:
            entries = [
                AbortedTransaction(each.producer_id, each.first_offset, each.last_offset, each.last_stable_offset)
                for each in aborted
            ]
            self._write_small(ABORTED_INDEX, b"".join(map(pack_aborted, entries)))
        return OutputGroup(
            base_offset=self.base_offset,
            next_base_offset=self._sources[-1].next_base_offset,
            sources=tuple(source.base_offset for source in self._sources),
            modified_ms=self._sources[-1].modified_ms,
            files=tuple(self._files),
        )

    def discard(self) -> None:
        """Remove what was written: the pass has failed, perhaps because the disk is full."""
        if self._log is not None:
            self._log.close()
            self._log = None
        for extension in (LOG, INDEX, TIME_INDEX, ABORTED_INDEX):
            self._disk.unlink(self._path(extension))

    def _offset_entries(self) -> bytes:
        count = int(self._state[OFFSET_ENTRIES])
        entries = np.empty(count, _OFFSET_ENTRY)
        entries["offset"] = self._offsets[:count, 0] - self.base_offset
        entries["position"] = self._offsets[:count, 1]
        return entries.tobytes()

    def _time_entries(self) -> bytes:
        count = int(self._state[TIME_ENTRIES])
        if self._state[LARGEST_TIMESTAMP] > self._state[LAST_TIMESTAMP] and count < len(self._times):
            self._times[count] = self._state[[LARGEST_TIMESTAMP, LARGEST_OFFSET]]
            count += 1
        entries = np.empty(count, _TIME_ENTRY)
        entries["timestamp"] = self._times[:count, 0]
        entries["offset"] = self._times[:count, 1] - self.base_offset
        return entries.tobytes()

    def _write_small(self, extension: str, data: bytes) -> None:
        file = self._create(extension)
        try:
            write_fully(file, data, 0)
        except BaseException:
            file.close()
            raise
        self._close(extension, file, len(data), crc32c(data))

    def _close(self, extension: str, file: File, size_bytes: int, crc: int) -> None:
        try:
            if self._plan.job_syncs:
                file.fsync()
        finally:
            file.close()
        self._disk.set_modified_ms(self._path(extension), self._sources[-1].modified_ms)
        self._files.append(OutputFile(extension, self._stem + extension, size_bytes, crc))
