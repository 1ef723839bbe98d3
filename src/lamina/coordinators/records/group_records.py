"""What ``__consumer_offsets`` says, key by key (internal-topics.md §3.1).

A record is a key and a value; a value of ``None`` is a tombstone. Topic ids are their 16 bytes. Must not know bytes:
``group_codec`` writes and reads them.
"""

from collections.abc import Mapping
from typing import NamedTuple

TopicIdPartitions = Mapping[bytes, tuple[int, ...]]
"""Partitions by topic id, in ascending order."""


class OffsetKey(NamedTuple):
    """Key versions 0 and 1; 1 is written."""

    group_id: str
    topic: str
    partition: int


class OffsetValue(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None
    """Only of commits that asked for a retention of their own (value version 1)."""
    topic_id: bytes | None = None


class ClassicGroupKey(NamedTuple):
    """Key version 2."""

    group_id: str


class ClassicMemberValue(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    """What the member said of itself for the protocol that was chosen."""
    assignment: bytes


class ClassicGroupValue(NamedTuple):
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_timestamp_ms: int
    members: tuple[ClassicMemberValue, ...]


class ConsumerGroupKey(NamedTuple):
    """Key version 3: the group's epoch."""

    group_id: str


class ConsumerGroupValue(NamedTuple):
    epoch: int
    metadata_hash: int = 0


class PartitionMetadataKey(NamedTuple):
    """Key version 4, which is only read, and removed by tombstones."""

    group_id: str


class PartitionMetadataValue(NamedTuple):
    """What it says is known from the metadata image."""


class ConsumerMemberKey(NamedTuple):
    """Key version 5: what a member said of itself."""

    group_id: str
    member_id: str


class ClassicMemberMetadata(NamedTuple):
    """Of a member that speaks the classic protocol in a consumer group."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class ConsumerMemberValue(NamedTuple):
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    regex: str | None
    rebalance_timeout_ms: int
    assignor: str | None
    classic: ClassicMemberMetadata | None = None


class TargetEpochKey(NamedTuple):
    """Key version 6: the epoch for which the target assignment was computed."""

    group_id: str


class TargetEpochValue(NamedTuple):
    epoch: int


class TargetAssignmentKey(NamedTuple):
    """Key version 7: the target assignment of a member."""

    group_id: str
    member_id: str


class TargetAssignmentValue(NamedTuple):
    partitions: TopicIdPartitions


class CurrentAssignmentKey(NamedTuple):
    """Key version 8: what a member has."""

    group_id: str
    member_id: str


class CurrentAssignmentValue(NamedTuple):
    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned: TopicIdPartitions
    pending_revocation: TopicIdPartitions


class RegexKey(NamedTuple):
    """Key version 16: the topics that a regular expression stands for."""

    group_id: str
    regex: str


class RegexValue(NamedTuple):
    topics: tuple[str, ...]
    version: int
    timestamp_ms: int


GroupKey = (
    OffsetKey
    | ClassicGroupKey
    | ConsumerGroupKey
    | PartitionMetadataKey
    | ConsumerMemberKey
    | TargetEpochKey
    | TargetAssignmentKey
    | CurrentAssignmentKey
    | RegexKey
)
GroupValue = (
    OffsetValue
    | ClassicGroupValue
    | ConsumerGroupValue
    | PartitionMetadataValue
    | ConsumerMemberValue
    | TargetEpochValue
    | TargetAssignmentValue
    | CurrentAssignmentValue
    | RegexValue
)


class GroupRecord(NamedTuple):
    key: GroupKey
    value: GroupValue | None
