"""A partition's log in a backup, written from batches that a leader sent.

Owns the files: Kafka's segments, each batch byte for byte where it was, and which transactions are open at their end.
Indexes, snapshots and the leader epochs are left out: the broker that opens the log makes them from the batches. Must
not know how batches are fetched, nor how many there are to come.
"""

from lamina.errors import CorruptMessage
from lamina.log.backup.copier import BackupError, Copier
from lamina.log.backup.directory import LOGS, TakenPartition
from lamina.log.backup.partition import TakenSegment
from lamina.log.files import File, write_fully
from lamina.log.identity import PARTITION_METADATA, format_partition_metadata
from lamina.log.names import partition_directory
from lamina.records.batch import MAX_RELATIVE_OFFSET, BatchHeader, check_crc, walk
from lamina.records.checksum import crc32c
from lamina.topic_partition import TopicPartition


class FetchedLog:
    """Begun anew, in place of what an earlier attempt at it left."""

    def __init__(
        self, copier: Copier, key: TopicPartition, topic_id: bytes, log_start_offset: int, segment_bytes: int
    ) -> None:
        self.key = key
        self.log_start_offset = log_start_offset
        self.next_offset = log_start_offset
        """Behind the last batch that was taken."""
        self.latest_epoch = -1
        """The newest leader epoch in which a batch was written."""
        self.open_transactions: dict[int, int] = {}
        """Producer epochs by the ids of producers whose transactions have not ended in what was taken."""
        self._cleaned_offset: int | None = None
        """Up to here cleaning has left gaps, as far as they show."""
        self._copier = copier
        self._topic_id = topic_id
        self._segment_bytes = segment_bytes
        self._path = f"{LOGS}/{partition_directory(*key)}"
        self._bases: list[int] = []
        self._sizes: list[int] = []
        self._crc = 0
        self._file: File | None = None
        copier.remove_tree(self._path)
        copier.make_dir(self._path)

    def append(self, batches: memoryview, end_offset: int) -> None:
        """Take the batches that begin below ``end_offset``. Raises :class:`BackupError` for bytes that are none."""
        try:
            for position, header in walk(batches):
                if header.base_offset >= end_offset:
                    return
                if header.next_offset <= self.next_offset:
                    continue
                check_crc(batches, position, header)
                self._write(batches[position : position + header.size_bytes], header)
                self._note(header)
        except CorruptMessage as error:
            raise BackupError(f"{partition_directory(*self.key)}: its leader sent a bad batch: {error}") from None

    def _write(self, batch: memoryview, header: BatchHeader) -> None:
        if not self._bases:
            # A log that was cleaned begins before its first batch: a consumer may have stopped in between.
            self._begin_segment(min(self.log_start_offset, header.base_offset))
        if self._is_full(header):
            self._begin_segment(header.base_offset)
        if self._file is None:
            self._file = self._copier.disk.open(self._segment_path(), create=True)
        write_fully(self._file, batch, self._sizes[-1])
        self._sizes[-1] += header.size_bytes
        self._crc = crc32c(batch, self._crc)

    def _begin_segment(self, base_offset: int) -> None:
        self.close()
        self._bases.append(base_offset)
        self._sizes.append(0)
        self._crc = 0
        self._file = self._copier.disk.open(self._segment_path(), create=True)

    def _is_full(self, header: BatchHeader) -> bool:
        is_too_large = self._sizes[-1] > 0 and self._sizes[-1] + header.size_bytes > self._segment_bytes
        return is_too_large or header.last_offset - self._bases[-1] > MAX_RELATIVE_OFFSET

    def _note(self, header: BatchHeader) -> None:
        if header.base_offset > self.next_offset or header.record_count <= header.last_offset_delta:
            self._cleaned_offset = header.next_offset
        self.next_offset = header.next_offset
        self.latest_epoch = max(self.latest_epoch, header.leader_epoch)
        if header.is_control:
            self.open_transactions.pop(header.producer_id, None)
        elif header.is_transactional:
            self.open_transactions[header.producer_id] = header.producer_epoch

    def close(self) -> None:
        """Make what was written durable. It may go on afterwards."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.fsync()
            finally:
                file.close()
        if self._bases:
            self._copier.note(self._name(), self._sizes[-1], self._crc)

    def finish(self, high_watermark: int) -> TakenPartition:
        """The partition is whole. One without records is an empty segment: it says where the log begins."""
        if not self._bases:
            self._begin_segment(self.log_start_offset)
        self.close()
        self._copier.write(f"{self._path}/{PARTITION_METADATA}", format_partition_metadata(self._topic_id))
        self._copier.sync_dir(self._path)
        return TakenPartition(
            *self.key,
            self._topic_id,
            0,
            [TakenSegment(base, size, is_linked=False) for base, size in zip(self._bases, self._sizes, strict=True)],
            self.log_start_offset,
            self.next_offset,
            self.log_start_offset,
            min(high_watermark, self.next_offset),
            self._cleaned_offset,
        )

    def _name(self) -> str:
        return f"{self._path}/{self._bases[-1]:020d}.log"

    def _segment_path(self) -> str:
        return f"{self._copier.root}/{self._name()}"
