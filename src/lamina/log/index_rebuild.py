"""Making the indexes of a segment again, which takes as long as going through its log.

Works on files of its own until it is done, so that it may run on any thread while the segment is used. Must not know
what the indexes are asked for, nor give them their names.
"""

from contextlib import suppress

from lamina.errors import CorruptMessage, StorageError
from lamina.log.files import TEMPORARY, Disk
from lamina.log.index_pair import IndexPair, IndexShape
from lamina.log.scan import headers
from lamina.records.batch import MAX_RELATIVE_OFFSET


class IndexesLost(StorageError):
    """The indexes of a segment are being rebuilt; the caller may try again in a moment."""


class IndexRebuild:
    """New indexes for the first ``size_bytes`` of a segment's log; ``shape`` has maps of its own."""

    def __init__(
        self, disk: Disk, stem: str, log_path: str, base_offset: int, size_bytes: int, shape: IndexShape
    ) -> None:
        self.size_bytes = size_bytes
        self.pair: IndexPair | None = None
        """The indexes under temporary names, once they are made."""
        self._disk = disk
        self._stem = stem
        self._log_path = log_path
        self._base_offset = base_offset
        self._shape = shape

    def work(self) -> None:
        """Go through the log as far as it can be read.

        Synced before they take their names: below the recovery point nothing will check them after a crash.
        """
        pair = IndexPair.new(self._disk, self._stem, TEMPORARY, self._base_offset, self._shape)
        file = self._disk.open(self._log_path)
        try:
            with suppress(CorruptMessage):
                for position, header in headers(file, 0, self.size_bytes):
                    if not self._fits(header.base_offset) or not self._fits(header.last_offset):
                        break
                    pair.count_batch(position, header.size_bytes, header.last_offset, header.max_timestamp)
        finally:
            file.close()
        pair.seal()
        pair.sync(self._disk)
        self.pair = pair

    def _fits(self, offset: int) -> bool:
        return 0 <= offset - self._base_offset <= MAX_RELATIVE_OFFSET
