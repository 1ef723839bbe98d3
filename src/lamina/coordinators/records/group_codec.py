"""The bytes of ``__consumer_offsets``: records as Kafka 4.1 writes them, and as any Kafka wrote them.

Keys begin with their version, which says what the record is about; values with theirs. Keys are never flexible.
Must not know what a record does to a group.
"""

from collections.abc import Callable
from struct import Struct

from lamina.coordinators.records import consumer_values
from lamina.coordinators.records.classic_values import (
    encode_offset,
    read_classic_group,
    read_offset,
    write_classic_group,
)
from lamina.coordinators.records.fields import UNREADABLE, Reader, Writer, corrupt
from lamina.coordinators.records.group_records import (
    ClassicGroupKey,
    ClassicGroupValue,
    ConsumerGroupKey,
    ConsumerGroupValue,
    ConsumerMemberKey,
    ConsumerMemberValue,
    CurrentAssignmentKey,
    CurrentAssignmentValue,
    GroupKey,
    GroupRecord,
    GroupValue,
    OffsetKey,
    OffsetValue,
    PartitionMetadataKey,
    RegexKey,
    RegexValue,
    TargetAssignmentKey,
    TargetAssignmentValue,
    TargetEpochKey,
    TargetEpochValue,
)
from lamina.errors import CorruptMessage
from lamina.wire.primitives import MalformedRequest

_KEY_VERSIONS: dict[type, int] = {
    OffsetKey: 1,
    ClassicGroupKey: 2,
    ConsumerGroupKey: 3,
    PartitionMetadataKey: 4,
    ConsumerMemberKey: 5,
    TargetEpochKey: 6,
    TargetAssignmentKey: 7,
    CurrentAssignmentKey: 8,
    RegexKey: 16,
}
_LAST_OFFSET_KEY_VERSION = 1
_OFFSET_KEY_HEAD = Struct(">hh")
_INT16, _INT32 = Struct(">h"), Struct(">i")


def encode_record(record: GroupRecord) -> tuple[bytes, bytes | None]:
    """Key and value as the log holds them."""
    key, value = record
    if type(key) is OffsetKey and type(value) is OffsetValue:
        return _encode_offset_key(key), encode_offset(value)
    return _encode_key(key), None if value is None else bytes(_WRITERS[type(value)](value).out)


def decode_record(key: bytes | None, value: bytes | None) -> GroupRecord | None:
    """``None`` for a kind of record that is not known here: share and streams groups, and what is to come.

    Raises CorruptMessage for bytes that are no record.
    """
    if key is None:
        raise CorruptMessage("a record of __consumer_offsets has no key")
    version = -1
    try:
        (version,) = _INT16.unpack_from(key)
        if version <= _LAST_OFFSET_KEY_VERSION and version >= 0:
            # Nearly all records of a log are offsets.
            return GroupRecord(_decode_offset_key(key), None if value is None else read_offset(value))
        readers = _READERS.get(version)
        if readers is None:
            return None
        read_key, read_value = readers
        decoded = read_key(Reader(key, 2))
        return GroupRecord(decoded, None if value is None else read_value(value))
    except UNREADABLE as error:
        raise corrupt(f"a record of __consumer_offsets with key version {version}", error) from error


# Keys


def _encode_offset_key(key: OffsetKey) -> bytes:
    group, topic = key.group_id.encode(), key.topic.encode()
    return b"".join(
        (_OFFSET_KEY_HEAD.pack(1, len(group)), group, _INT16.pack(len(topic)), topic, _INT32.pack(key.partition))
    )


def _encode_key(key: GroupKey) -> bytes:
    if type(key) is OffsetKey:
        return _encode_offset_key(key)
    writer = Writer(_KEY_VERSIONS[type(key)])
    for part in key:
        writer.string(str(part))
    return bytes(writer.out)


def _decode_offset_key(key: bytes) -> OffsetKey:
    _, size = _OFFSET_KEY_HEAD.unpack_from(key)
    topic_at = _OFFSET_KEY_HEAD.size + size
    (topic_size,) = _INT16.unpack_from(key, topic_at)
    partition_at = topic_at + _INT16.size + topic_size
    (partition,) = _INT32.unpack_from(key, partition_at)
    if size < 0 or topic_size < 0:
        raise MalformedRequest("a string that must be there is null")
    group, topic = key[_OFFSET_KEY_HEAD.size : topic_at], key[topic_at + _INT16.size : partition_at]
    return OffsetKey(group.decode(), topic.decode(), partition)


_WRITERS: dict[type, Callable[..., Writer]] = {
    ClassicGroupValue: write_classic_group,
    ConsumerGroupValue: consumer_values.write_consumer_group,
    ConsumerMemberValue: consumer_values.write_consumer_member,
    TargetEpochValue: consumer_values.write_target_epoch,
    TargetAssignmentValue: consumer_values.write_target_assignment,
    CurrentAssignmentValue: consumer_values.write_current_assignment,
    RegexValue: consumer_values.write_regex,
}
"""Of the values that are written; the metadata of partitions only ever gets a tombstone."""

_READERS: dict[int, tuple[Callable[[Reader], GroupKey], Callable[[bytes], GroupValue]]] = {
    2: (lambda key: ClassicGroupKey(key.string()), read_classic_group),
    3: (lambda key: ConsumerGroupKey(key.string()), consumer_values.read_consumer_group),
    4: (lambda key: PartitionMetadataKey(key.string()), consumer_values.read_partition_metadata),
    5: (lambda key: ConsumerMemberKey(key.string(), key.string()), consumer_values.read_consumer_member),
    6: (lambda key: TargetEpochKey(key.string()), consumer_values.read_target_epoch),
    7: (lambda key: TargetAssignmentKey(key.string(), key.string()), consumer_values.read_target_assignment),
    8: (lambda key: CurrentAssignmentKey(key.string(), key.string()), consumer_values.read_current_assignment),
    16: (lambda key: RegexKey(key.string(), key.string()), consumer_values.read_regex),
}
