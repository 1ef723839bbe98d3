"""The values of consumer groups (KIP-848). All of them are flexible, at version 0.

Must not know keys.
"""

from struct import Struct

from lamina.coordinators.records.fields import Reader, Writer, open_value
from lamina.coordinators.records.group_records import (
    ClassicMemberMetadata,
    ConsumerGroupValue,
    ConsumerMemberValue,
    CurrentAssignmentValue,
    PartitionMetadataValue,
    RegexValue,
    TargetAssignmentValue,
    TargetEpochValue,
    TopicIdPartitions,
)

_METADATA_HASH_TAG = 0
_CLASSIC_TAG = 0
_ABSENT, _PRESENT = b"\0", b"\1"
"""A nullable structure in a tag says first whether it is there."""
_INT64 = Struct(">q")


def write_consumer_group(value: ConsumerGroupValue) -> Writer:
    writer = _flexible()
    writer.int32(value.epoch)
    writer.tags({_METADATA_HASH_TAG: _INT64.pack(value.metadata_hash)} if value.metadata_hash else None)
    return writer


def read_consumer_group(data: bytes) -> ConsumerGroupValue:
    reader = _open(data)
    epoch = reader.int32()
    tag = reader.tags().get(_METADATA_HASH_TAG)
    return ConsumerGroupValue(epoch, 0 if tag is None else int(_INT64.unpack(tag)[0]))


def read_partition_metadata(_: bytes) -> PartitionMetadataValue:
    return PartitionMetadataValue()


def write_consumer_member(value: ConsumerMemberValue) -> Writer:
    writer = _flexible()
    for text in (value.instance_id, value.rack_id, value.client_id, value.client_host):
        writer.string(text)
    writer.array(value.topics, writer.string)
    writer.string(value.regex)
    writer.int32(value.rebalance_timeout_ms)
    writer.string(value.assignor)
    writer.tags({_CLASSIC_TAG: _ABSENT if value.classic is None else _encode_classic_metadata(value.classic)})
    return writer


def _encode_classic_metadata(classic: ClassicMemberMetadata) -> bytes:
    writer = Writer(is_flexible=True)
    writer.out += _PRESENT
    writer.int32(classic.session_timeout_ms)

    def protocol(one: tuple[str, bytes]) -> None:
        writer.string(one[0])
        writer.bytes_(one[1])
        writer.tags()

    writer.array(classic.protocols, protocol)
    writer.tags()
    return bytes(writer.out)


def read_consumer_member(data: bytes) -> ConsumerMemberValue:
    reader = _open(data)
    instance_id, rack_id = reader.nullable_string(), reader.nullable_string()
    client_id, client_host = reader.string(), reader.string()
    topics = reader.array(reader.string)
    regex = reader.nullable_string()
    rebalance_timeout_ms = reader.int32()
    assignor = reader.nullable_string()
    tag = reader.tags().get(_CLASSIC_TAG)
    classic = None if tag is None else _read_classic_metadata(Reader(tag, is_flexible=True))
    return ConsumerMemberValue(
        instance_id, rack_id, client_id, client_host, topics, regex, rebalance_timeout_ms, assignor, classic
    )


def _read_classic_metadata(reader: Reader) -> ClassicMemberMetadata | None:
    if not reader.int8():
        return None

    def protocol() -> tuple[str, bytes]:
        read = reader.string(), reader.bytes_()
        reader.tags()
        return read

    return ClassicMemberMetadata(reader.int32(), reader.array(protocol))


def write_target_epoch(value: TargetEpochValue) -> Writer:
    writer = _flexible()
    writer.int32(value.epoch)
    writer.tags()
    return writer


def read_target_epoch(data: bytes) -> TargetEpochValue:
    return TargetEpochValue(_open(data).int32())


def write_target_assignment(value: TargetAssignmentValue) -> Writer:
    writer = _flexible()
    _write_partitions(writer, value.partitions)
    writer.tags()
    return writer


def read_target_assignment(data: bytes) -> TargetAssignmentValue:
    return TargetAssignmentValue(_read_partitions(_open(data)))


def write_current_assignment(value: CurrentAssignmentValue) -> Writer:
    writer = _flexible()
    writer.int32(value.member_epoch)
    writer.int32(value.previous_member_epoch)
    writer.int8(value.state)
    _write_partitions(writer, value.assigned)
    _write_partitions(writer, value.pending_revocation)
    writer.tags()
    return writer


def read_current_assignment(data: bytes) -> CurrentAssignmentValue:
    reader = _open(data)
    return CurrentAssignmentValue(
        reader.int32(), reader.int32(), reader.int8(), _read_partitions(reader), _read_partitions(reader)
    )


def write_regex(value: RegexValue) -> Writer:
    writer = _flexible()
    writer.array(value.topics, writer.string)
    writer.int64(value.version)
    writer.int64(value.timestamp_ms)
    writer.tags()
    return writer


def read_regex(data: bytes) -> RegexValue:
    reader = _open(data)
    return RegexValue(reader.array(reader.string), reader.int64(), reader.int64())


def _write_partitions(writer: Writer, partitions: TopicIdPartitions) -> None:
    def topic(one: tuple[bytes, tuple[int, ...]]) -> None:
        writer.uuid(one[0])
        writer.int32s(one[1])
        writer.tags()

    writer.array(tuple(partitions.items()), topic)


def _read_partitions(reader: Reader) -> TopicIdPartitions:
    def topic() -> tuple[bytes, tuple[int, ...]]:
        read = reader.uuid(), reader.array(reader.int32)
        reader.tags()
        return read

    return dict(reader.array(topic))


def _flexible() -> Writer:
    return Writer(0, is_flexible=True)


def _open(data: bytes) -> Reader:
    _, reader = open_value(data, 0, 0)
    return reader
