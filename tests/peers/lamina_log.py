"""Lamina's log room as the other side of a comparison: batches with a known truth, appended and closed.

The only module here that knows Lamina's own classes, so that a change of theirs is followed in one place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lamina.log.directory import LogDirectory
from lamina.records import record as lamina_record
from lamina.records.batch import Codec, read_header
from lamina.records.marker import ControlType, build_marker
from lamina.settings.log_config import LogConfig
from tests.peers.driver import Record, StoredRecord

NODE_ID = 1
NOW_MS = 1_700_000_100_000
PRODUCER_EPOCH = 0
TOPIC_ID = bytes(range(1, 17))


class Batches:
    """Batches to append, in order, and what a consumer must see of them afterwards."""

    def __init__(self, first_offset: int = 0) -> None:
        self.next_offset = first_offset
        self.encoded: list[bytearray] = []
        self.aborted: list[tuple[int, int, int]] = []
        """Producer id, first offset and marker offset of every aborted transaction."""
        self._records: list[tuple[int, StoredRecord]] = []
        self._sequences: dict[int, int] = {}
        self._open_since: dict[int, int] = {}

    @property
    def committed(self) -> list[StoredRecord]:
        return [stored for producer_id, stored in self._records if not self._is_aborted(producer_id, stored.offset)]

    def _is_aborted(self, producer_id: int, offset: int) -> bool:
        return any(producer_id == whose and first <= offset < last for whose, first, last in self.aborted)

    def add(
        self,
        records: Sequence[Record],
        codec: Codec = Codec.NONE,
        *,
        producer_id: int = -1,
        is_transactional: bool = False,
    ) -> None:
        """One batch; with a producer id it carries that producer's next sequences."""
        first_offset = self.next_offset
        stored = [StoredRecord(first_offset + at, record) for at, record in enumerate(records)]
        sequence = self._sequences.get(producer_id, 0)
        batch = lamina_record.build_batch(
            [_to_lamina(each) for each in stored],
            codec=codec,
            producer_id=producer_id,
            producer_epoch=PRODUCER_EPOCH if producer_id >= 0 else -1,
            base_sequence=sequence if producer_id >= 0 else -1,
            is_transactional=is_transactional,
        )
        if is_transactional:
            self._open_since.setdefault(producer_id, first_offset)
        self._sequences[producer_id] = sequence + len(records)
        self._records += [(producer_id, each) for each in stored]
        self._append(batch, len(records))

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        first_offset = self._open_since.pop(producer_id)
        if not is_commit:
            self.aborted.append((producer_id, first_offset, self.next_offset))
        marker = build_marker(
            ControlType.COMMIT if is_commit else ControlType.ABORT,
            offset=self.next_offset,
            timestamp_ms=NOW_MS,
            producer_id=producer_id,
            producer_epoch=PRODUCER_EPOCH,
            coordinator_epoch=0,
        )
        self._append(marker, 1)

    def _append(self, batch: bytearray, offsets: int) -> None:
        self.encoded.append(batch)
        self.next_offset += offsets


def _to_lamina(stored: StoredRecord) -> lamina_record.Record:
    record = stored.record
    assert record.timestamp_ms is not None
    headers = tuple((name.encode(), value) for name, value in record.headers)
    return lamina_record.Record(stored.offset, record.timestamp_ms, record.key, record.value, headers)


def recover_directory(data_directory: Path, configs: Mapping[tuple[str, int], LogConfig]) -> None:
    """Lamina opens these partitions of the directory, repairs what a crash left, and stops cleanly."""
    directory = LogDirectory.open(str(data_directory), node_id=NODE_ID)
    for (topic, partition), config in configs.items():
        directory.open_partition(topic, partition, config, NOW_MS)
    directory.close()


def append_to_partition(
    data_directory: Path, topic: str, batches: Batches, config: LogConfig, *, clean_shutdown: bool = True
) -> None:
    """Lamina opens the directory, appends to the topic's partition 0 in its latest leader epoch, and lets go.

    A topic that is not there is made. Without a clean shutdown all is left as a crash would leave it.
    """
    directory = LogDirectory.open(str(data_directory), node_id=NODE_ID)
    if (data_directory / f"{topic}-0").exists():
        log = directory.open_partition(topic, 0, config, NOW_MS)
    else:
        log = directory.create_partition(topic, 0, TOPIC_ID, config, NOW_MS)
    leader_epoch = max(log.epochs.latest, 0)
    for batch in batches.encoded:
        log.append(batch, read_header(batch), leader_epoch, NOW_MS)
    if clean_shutdown:
        directory.close()
    else:
        log.close()
        directory.release()
