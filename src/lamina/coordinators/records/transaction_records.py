"""What ``__transaction_state`` says of each transactional id (internal-topics.md §3.2).

A record is a key and a value; a value of ``None`` is a tombstone. Must not know bytes: ``transaction_codec`` writes
and reads them.
"""

from enum import IntEnum
from typing import NamedTuple

from lamina.records.batch import NO_PRODUCER_EPOCH
from lamina.topic_partition import TopicPartition

NO_PRODUCER_ID = -1
NOT_STARTED_MS = -1


class Status(IntEnum):
    """Where a transactional id stands. The number is what the log holds."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def state_name(self) -> str:
        """What DescribeTransactions and ListTransactions call it."""
        return "".join(word.capitalize() for word in self.name.split("_"))


class TransactionKey(NamedTuple):
    """Key version 0."""

    transactional_id: str


class TransactionValue(NamedTuple):
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: Status
    partitions: frozenset[TopicPartition]
    """There are none in Empty."""
    update_timestamp_ms: int
    start_timestamp_ms: int = NOT_STARTED_MS
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last change, which is the same one unless that change replaced it."""
    next_producer_id: int = NO_PRODUCER_ID
    """Takes over when the transaction that is ending has ended; set when the epochs of the other are used up."""
    client_transaction_version: int = 0
    """What the client spoke when it made the last change to the transaction."""
    next_producer_epoch: int = NO_PRODUCER_EPOCH
    """Of two-phase commits, which are not offered: kept as it was read."""


class TransactionRecord(NamedTuple):
    key: TransactionKey
    value: TransactionValue | None
