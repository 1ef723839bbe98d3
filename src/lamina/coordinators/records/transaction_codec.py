"""The bytes of ``__transaction_state``: records as Kafka 4.1 writes them, and as any Kafka wrote them.

The value's version goes with the finalized level of ``transaction.version``: 0 with level 0, else 1, which is
flexible. Must not know what a record does to a transaction.
"""

from itertools import groupby
from struct import Struct

from lamina.coordinators.records.fields import UNREADABLE, Reader, Writer, corrupt, open_value
from lamina.coordinators.records.transaction_records import (
    NO_PRODUCER_ID,
    Status,
    TransactionKey,
    TransactionRecord,
    TransactionValue,
)
from lamina.errors import CorruptMessage
from lamina.records.batch import NO_PRODUCER_EPOCH

_INT16, _INT64 = Struct(">h"), Struct(">q")
_KEY_VERSION = 0
_LATEST_VALUE_VERSION = 1
_FIRST_FLEXIBLE = 1
_PREVIOUS_PRODUCER_ID, _NEXT_PRODUCER_ID, _CLIENT_TRANSACTION_VERSION, _NEXT_PRODUCER_EPOCH = range(4)

_TopicPartitions = tuple[str, tuple[int, ...]]


def encode_record(record: TransactionRecord, transaction_version: int = 2) -> tuple[bytes, bytes | None]:
    """Key and value as the log holds them."""
    key, value = record
    writer = Writer(_KEY_VERSION)
    writer.string(key.transactional_id)
    return bytes(writer.out), None if value is None else _encode_value(value, transaction_version)


def decode_record(key: bytes | None, value: bytes | None) -> TransactionRecord | None:
    """``None`` for a kind of record that is not known here. Raises CorruptMessage for bytes that are no record."""
    if key is None:
        raise CorruptMessage("a record of __transaction_state has no key")
    try:
        (version,) = _INT16.unpack_from(key)
        if version != _KEY_VERSION:
            return None
        decoded = TransactionKey(Reader(key, _INT16.size).string())
        return TransactionRecord(decoded, None if value is None else _decode_value(value))
    except UNREADABLE as error:
        raise corrupt("a record of __transaction_state", error) from error


def _encode_value(value: TransactionValue, transaction_version: int) -> bytes:
    # A client that speaks version 2 can only be recorded in the flexible version, whatever the level has become since.
    version = 1 if max(transaction_version, value.client_transaction_version) > 0 else 0
    writer = Writer(version, is_flexible=version >= _FIRST_FLEXIBLE)
    writer.int64(value.producer_id)
    writer.int16(value.producer_epoch)
    writer.int32(value.timeout_ms)
    writer.int8(value.status)
    topics = None if value.status is Status.EMPTY else _by_topic(value)

    def write_topic(topic: _TopicPartitions) -> None:
        writer.string(topic[0])
        writer.array(topic[1], writer.int32)
        writer.tags()

    writer.nullable_array(topics, write_topic)
    writer.int64(value.update_timestamp_ms)
    writer.int64(value.start_timestamp_ms)
    writer.tags(_tags(value))
    return bytes(writer.out)


def _by_topic(value: TransactionValue) -> tuple[_TopicPartitions, ...]:
    by_topic = groupby(sorted(value.partitions), key=lambda partition: partition[0])
    return tuple((topic, tuple(index for _, index in partitions)) for topic, partitions in by_topic)


def _tags(value: TransactionValue) -> dict[int, bytes]:
    """Those that differ from their defaults."""
    tags = {}
    if value.previous_producer_id != NO_PRODUCER_ID:
        tags[_PREVIOUS_PRODUCER_ID] = _INT64.pack(value.previous_producer_id)
    if value.next_producer_id != NO_PRODUCER_ID:
        tags[_NEXT_PRODUCER_ID] = _INT64.pack(value.next_producer_id)
    if value.client_transaction_version:
        tags[_CLIENT_TRANSACTION_VERSION] = _INT16.pack(value.client_transaction_version)
    if value.next_producer_epoch != NO_PRODUCER_EPOCH:
        tags[_NEXT_PRODUCER_EPOCH] = _INT16.pack(value.next_producer_epoch)
    return tags


def _decode_value(data: bytes) -> TransactionValue:
    _, reader = open_value(data, _LATEST_VALUE_VERSION, _FIRST_FLEXIBLE)

    def read_topic() -> _TopicPartitions:
        topic = reader.string(), reader.array(reader.int32)
        reader.tags()
        return topic

    producer_id, producer_epoch, timeout_ms = reader.int64(), reader.int16(), reader.int32()
    status = _status(reader.int8())
    topics = reader.nullable_array(read_topic) or ()
    update_timestamp_ms, start_timestamp_ms = reader.int64(), reader.int64()
    tags = reader.tags()
    return TransactionValue(
        producer_id,
        producer_epoch,
        timeout_ms,
        status,
        frozenset((topic, index) for topic, indexes in topics for index in indexes),
        update_timestamp_ms,
        start_timestamp_ms,
        _read_tag(tags, _PREVIOUS_PRODUCER_ID, _INT64, NO_PRODUCER_ID),
        _read_tag(tags, _NEXT_PRODUCER_ID, _INT64, NO_PRODUCER_ID),
        _read_tag(tags, _CLIENT_TRANSACTION_VERSION, _INT16, 0),
        _read_tag(tags, _NEXT_PRODUCER_EPOCH, _INT16, NO_PRODUCER_EPOCH),
    )


def _status(number: int) -> Status:
    try:
        return Status(number)
    except ValueError as error:
        raise CorruptMessage(f"a transaction has status {number}; there are 0 to {max(Status)}") from error


def _read_tag(tags: dict[int, bytes], tag: int, struct: Struct, default: int) -> int:
    data = tags.get(tag)
    return default if data is None else int(struct.unpack(data)[0])
