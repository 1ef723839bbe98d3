"""What members of the classic ``consumer`` protocol tell each other through the broker: subscriptions and assignments.

The broker passes these bytes on as they are; it looks inside only to know which topics a group reads, and to convert
between the two protocols. Versions above the known ones are read as the newest known: new fields come at the end.
Must not know groups.
"""

from collections.abc import Mapping
from struct import Struct
from typing import NamedTuple

from lamina.coordinators.records.fields import UNREADABLE, Reader, Writer, corrupt

CONSUMER_PROTOCOL_TYPE = "consumer"
_INT16 = Struct(">h")
_NO_GENERATION = -1


class Subscription(NamedTuple):
    version: int
    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: Mapping[str, tuple[int, ...]] = {}
    generation: int = _NO_GENERATION
    rack_id: str | None = None


def read_subscription(data: bytes) -> Subscription:
    """Raises CorruptMessage for bytes that are none."""
    try:
        reader = Reader(data)
        version = reader.int16()
        topics = reader.array(reader.string)
        user_data = reader.nullable_bytes()
        owned = dict(reader.array(lambda: _read_topic(reader))) if version >= 1 else {}
        generation = reader.int32() if version >= 2 else _NO_GENERATION
        rack_id = reader.nullable_string() if version >= 3 else None
    except UNREADABLE as error:
        raise corrupt("the subscription of a member", error) from error
    return Subscription(version, topics, user_data, owned, generation, rack_id)


def write_subscription(subscription: Subscription) -> bytes:
    version = subscription.version
    writer = Writer(version)
    writer.array(subscription.topics, writer.string)
    writer.nullable_bytes(subscription.user_data)
    if version >= 1:
        _write_topics(writer, subscription.owned)
    if version >= 2:
        writer.int32(subscription.generation)
    if version >= 3:
        writer.string(subscription.rack_id)
    return bytes(writer.out)


class Assignment(NamedTuple):
    partitions: Mapping[str, tuple[int, ...]] = {}
    user_data: bytes = b""


def read_assignment(data: bytes) -> Assignment:
    """No bytes assign nothing. Raises CorruptMessage for bytes that are no assignment."""
    if not data:
        return Assignment()
    try:
        reader = Reader(data, _INT16.size)
        return Assignment(dict(reader.array(lambda: _read_topic(reader))), reader.nullable_bytes() or b"")
    except UNREADABLE as error:
        raise corrupt("the assignment of a member", error) from error


def write_assignment(partitions: Mapping[str, tuple[int, ...]], version: int) -> bytes:
    writer = Writer(version)
    _write_topics(writer, partitions)
    writer.nullable_bytes(None)
    return bytes(writer.out)


def _read_topic(reader: Reader) -> tuple[str, tuple[int, ...]]:
    return reader.string(), reader.array(reader.int32)


def _write_topics(writer: Writer, topics: Mapping[str, tuple[int, ...]]) -> None:
    def topic(one: tuple[str, tuple[int, ...]]) -> None:
        writer.string(one[0])
        writer.array(one[1], writer.int32)

    writer.array(tuple(topics.items()), topic)
