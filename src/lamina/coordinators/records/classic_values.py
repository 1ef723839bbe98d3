"""The values of committed offsets and classic groups, in every version that a Kafka ever wrote.

Must not know keys.
"""

from struct import Struct

from lamina.coordinators.records.fields import Writer, open_value
from lamina.coordinators.records.group_records import (
    ClassicGroupValue,
    ClassicMemberValue,
    OffsetValue,
)
from lamina.errors import CorruptMessage
from lamina.records.batch import NO_LEADER_EPOCH
from lamina.wire.primitives import write_uvarint

_OFFSET_VERSION = 4
_OFFSET_WITH_EXPIRY_VERSION = 1
_CLASSIC_GROUP_VERSION = 3
_LATEST = 4
_FIRST_FLEXIBLE = 4
_NEVER = -1
_TOPIC_ID_TAG = 0
_UUID_BYTES = 16

_OFFSET_HEAD = Struct(">hqi")
_PLAIN_OFFSET = Struct(">hqiBqB")
_INT16, _INT64 = Struct(">h"), Struct(">q")


def encode_offset(value: OffsetValue) -> bytes:
    metadata = value.metadata.encode()
    if value.expire_timestamp_ms is not None:
        return b"".join(
            (
                _INT16.pack(_OFFSET_WITH_EXPIRY_VERSION),
                _INT64.pack(value.offset),
                _INT16.pack(len(metadata)),
                metadata,
                _INT64.pack(value.commit_timestamp_ms),
                _INT64.pack(value.expire_timestamp_ms),
            )
        )
    out = bytearray(_OFFSET_HEAD.pack(_OFFSET_VERSION, value.offset, value.leader_epoch))
    write_uvarint(out, len(metadata) + 1)
    out += metadata
    out += _INT64.pack(value.commit_timestamp_ms)
    if value.topic_id is None:
        out.append(0)
    else:
        out += bytes((1, _TOPIC_ID_TAG, _UUID_BYTES))
        out += value.topic_id
    return bytes(out)


def read_offset(data: bytes) -> OffsetValue:
    if len(data) == _PLAIN_OFFSET.size:
        # As nearly all of them are: written by 4.x, without metadata or tags.
        version, offset, leader_epoch, metadata_size, commit_timestamp_ms, tags = _PLAIN_OFFSET.unpack(data)
        if version == _OFFSET_VERSION and metadata_size == 1 and tags == 0:
            return OffsetValue(offset, leader_epoch, "", commit_timestamp_ms)
    version, reader = open_value(data, _LATEST, _FIRST_FLEXIBLE)
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else NO_LEADER_EPOCH
    metadata = reader.string()
    commit_timestamp_ms = reader.int64()
    expire_timestamp_ms = reader.int64() if version == 1 else _NEVER
    topic_id = reader.tags().get(_TOPIC_ID_TAG)
    if topic_id is not None and len(topic_id) != _UUID_BYTES:
        raise CorruptMessage(f"an offset names a topic by {len(topic_id)} bytes")
    return OffsetValue(
        offset,
        leader_epoch,
        metadata,
        commit_timestamp_ms,
        None if expire_timestamp_ms == _NEVER else expire_timestamp_ms,
        topic_id,
    )


def write_classic_group(value: ClassicGroupValue) -> Writer:
    writer = Writer(_CLASSIC_GROUP_VERSION)
    writer.string(value.protocol_type)
    writer.int32(value.generation)
    writer.string(value.protocol)
    writer.string(value.leader)
    writer.int64(value.state_timestamp_ms)

    def member(one: ClassicMemberValue) -> None:
        writer.string(one.member_id)
        writer.string(one.instance_id)
        writer.string(one.client_id)
        writer.string(one.client_host)
        writer.int32(one.rebalance_timeout_ms)
        writer.int32(one.session_timeout_ms)
        writer.bytes_(one.subscription)
        writer.bytes_(one.assignment)

    writer.array(value.members, member)
    return writer


def read_classic_group(data: bytes) -> ClassicGroupValue:
    version, reader = open_value(data, _LATEST, _FIRST_FLEXIBLE)

    def member() -> ClassicMemberValue:
        member_id = reader.string()
        instance_id = reader.nullable_string() if version >= 3 else None
        client_id, client_host = reader.string(), reader.string()
        rebalance_timeout_ms = reader.int32() if version >= 1 else None
        session_timeout_ms = reader.int32()
        subscription, assignment = reader.bytes_(), reader.bytes_()
        reader.tags()
        return ClassicMemberValue(
            member_id,
            instance_id,
            client_id,
            client_host,
            session_timeout_ms if rebalance_timeout_ms is None else rebalance_timeout_ms,
            session_timeout_ms,
            subscription,
            assignment,
        )

    protocol_type, generation = reader.string(), reader.int32()
    protocol, leader = reader.nullable_string(), reader.nullable_string()
    state_timestamp_ms = reader.int64() if version >= 2 else _NEVER
    members = reader.array(member)
    return ClassicGroupValue(protocol_type, generation, protocol, leader, state_timestamp_ms, members)
