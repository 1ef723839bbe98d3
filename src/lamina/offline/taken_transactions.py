"""What the state of transactions in a backup says of transactions that are open in its other partitions.

Must not know how anything was taken.
"""

from collections.abc import Mapping

from lamina.coordinators.records.transaction_codec import decode_record
from lamina.coordinators.records.transaction_records import Status, TransactionValue
from lamina.errors import CorruptMessage
from lamina.log.backup.copier import BackupError
from lamina.log.files import Disk, read_file
from lamina.records.batch import walk
from lamina.records.record import iterate_records
from lamina.topic_partition import TopicPartition

_BATCH_LIMIT_BYTES = 100 * 1024 * 1024
_ENDING = (Status.PREPARE_COMMIT, Status.PREPARE_ABORT, Status.PREPARE_EPOCH_FENCE)
_EPOCHS_APART = 2
"""From version 2 on, the coordinator ends a transaction with the next epoch of its producer."""


class TakenTransactions:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._by_id: dict[str, TransactionValue] = {}

    def read(self, directory: str) -> None:
        """One partition of ``__transaction_state``, as it was taken."""
        for entry in self._disk.scan(directory):
            if entry.name.endswith(".log"):
                self._read_segment(f"{directory}/{entry.name}")

    def _read_segment(self, path: str) -> None:
        data = read_file(self._disk, path)
        try:
            for position, header in walk(data):
                if header.is_control:
                    continue
                for record in iterate_records(data, position, header, _BATCH_LIMIT_BYTES):
                    decoded = decode_record(record.key, record.value)
                    if decoded is None:
                        continue
                    if decoded.value is None:
                        self._by_id.pop(decoded.key.transactional_id, None)
                    else:
                        self._by_id[decoded.key.transactional_id] = decoded.value
        except CorruptMessage as error:
            raise BackupError(f"{path}: {error}") from None

    def ended(self, key: TopicPartition, open_transactions: Mapping[int, int]) -> frozenset[int]:
        """Of the producers with a transaction that is open in a partition, those whose coordinator has ended it."""
        by_producer: dict[int, TransactionValue] = {}
        for value in self._by_id.values():
            for producer_id in (value.producer_id, value.previous_producer_id):
                by_producer[producer_id] = value
        return frozenset(
            producer_id
            for producer_id, epoch in open_transactions.items()
            if not _is_to_be_ended(by_producer.get(producer_id), key, epoch)
        )


def _is_to_be_ended(value: TransactionValue | None, key: TopicPartition, epoch: int) -> bool:
    """Whether the coordinator that loads this value ends the transaction of a producer epoch in a partition."""
    if value is None or key not in value.partitions:
        return False
    if value.status in _ENDING:
        return value.producer_epoch - epoch < _EPOCHS_APART
    return value.status is Status.ONGOING and value.producer_epoch == epoch
