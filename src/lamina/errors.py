"""Kafka's error codes as exceptions.

Owns the numbers and names of the protocol's errors. The core raises them; a handler turns them into its own
reply. Every error carries one sentence for a person; it never carries a protocol message. Must not know any
other room.
"""

from enum import IntEnum
from typing import ClassVar


class ErrorCode(IntEnum):
    """The protocol's error codes that Lamina gives."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    MESSAGE_TOO_LARGE = 10
    RECORD_LIST_TOO_LARGE = 18
    INVALID_TIMESTAMP = 32
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    TRANSACTION_COORDINATOR_FENCED = 52
    KAFKA_STORAGE_ERROR = 56
    UNSUPPORTED_COMPRESSION_TYPE = 76
    INVALID_RECORD = 87


class KafkaError(Exception):
    """An error that a client is told about by its code."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR


class OffsetOutOfRange(KafkaError):
    code = ErrorCode.OFFSET_OUT_OF_RANGE


class CorruptMessage(KafkaError):
    """A batch whose bytes are not what its header says."""

    code = ErrorCode.CORRUPT_MESSAGE


class MessageTooLarge(KafkaError):
    code = ErrorCode.MESSAGE_TOO_LARGE


class RecordListTooLarge(KafkaError):
    code = ErrorCode.RECORD_LIST_TOO_LARGE


class OutOfOrderSequence(KafkaError):
    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class InvalidProducerEpoch(KafkaError):
    code = ErrorCode.INVALID_PRODUCER_EPOCH


class InvalidTransactionState(KafkaError):
    code = ErrorCode.INVALID_TXN_STATE


class TransactionCoordinatorFenced(KafkaError):
    code = ErrorCode.TRANSACTION_COORDINATOR_FENCED


class StorageError(KafkaError):
    """The disk failed an operation; its directory is offline."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class UnsupportedCompression(KafkaError):
    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class RecordsRejected(KafkaError):
    """A client's batch breaks a rule; ``record_errors`` names records by their index in it (fact 8)."""

    def __init__(self, message: str, record_errors: tuple[tuple[int, str], ...] = ()) -> None:
        super().__init__(message)
        self.record_errors = record_errors


class InvalidRecord(RecordsRejected):
    code = ErrorCode.INVALID_RECORD


class InvalidTimestamp(RecordsRejected):
    code = ErrorCode.INVALID_TIMESTAMP
