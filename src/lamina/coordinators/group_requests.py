"""What the group coordinator is asked and what it answers, whatever version of the protocol it came in.

Errors are raised as :class:`~lamina.errors.KafkaError`, or are the answer of a request that had to wait. Must not
know the wire.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from lamina.coordinators.records.group_records import TopicIdPartitions
from lamina.errors import KafkaError


class Client(NamedTuple):
    """Who asks."""

    client_id: str
    host: str
    """As Kafka stores it: a slash and the address."""


# The classic protocol


class JoinRequest(NamedTuple):
    group_id: str
    member_id: str
    """Empty for a member that is new."""
    instance_id: str | None
    client: Client
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    """Names in the member's order of preference, each with what the member says of itself."""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    new_member_id: str
    """The id to be given if the member has none; made by the caller, since machines know no randomness."""
    requires_known_member_id: bool
    """Version 4 and up: a new dynamic member is first told its id and joins with it."""
    may_skip_assignment: bool
    """Version 9 and up: the leader of a group can be told not to compute an assignment."""
    reason: str = ""


class JoinedMember(NamedTuple):
    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinResponse(NamedTuple):
    member_id: str
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()
    """Only the leader is told."""
    error: KafkaError | None = None
    """For the errors that must carry the member's id."""


class SyncRequest(NamedTuple):
    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    protocol_type: str | None
    protocol: str | None
    assignments: Mapping[str, bytes]
    """By member; only the leader sends them."""


class SyncResponse(NamedTuple):
    protocol_type: str | None
    protocol: str | None
    assignment: bytes


class HeartbeatRequest(NamedTuple):
    """Answered with ``None``."""

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None


class LeavingMember(NamedTuple):
    member_id: str
    instance_id: str | None
    reason: str = ""


class LeaveRequest(NamedTuple):
    group_id: str
    members: tuple[LeavingMember, ...]


class LeaveResponse(NamedTuple):
    members: tuple[tuple[LeavingMember, KafkaError | None], ...]


# KIP-848


class ConsumerHeartbeatRequest(NamedTuple):
    group_id: str
    member_id: str
    """Empty only in version 0, when a member joins."""
    member_epoch: int
    """0 joins, -1 leaves, -2 leaves for a moment (static members)."""
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    """-1: as before. The same holds for ``None`` below."""
    topics: tuple[str, ...] | None
    regex: str | None
    assignor: str | None
    owned: TopicIdPartitions | None
    client: Client
    new_member_id: str
    api_version: int = 1
    may_describe: Callable[[str], bool] | None = None
    """Which topics its client may know of; ``None`` for all."""


class ConsumerHeartbeatResponse(NamedTuple):
    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: TopicIdPartitions | None
    """``None``: as before."""


# Offsets


class CommittedPartition(NamedTuple):
    """One partition of a commit, known to exist."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None
    topic_id: bytes | None = None
    commit_timestamp_ms: int | None = None


class OffsetCommitRequest(NamedTuple):
    """Answered with one error or ``None`` for each partition, in order."""

    group_id: str
    member_id: str
    generation_or_epoch: int
    instance_id: str | None
    partitions: tuple[CommittedPartition, ...]
    retention_ms: int | None = None
    """Versions 2 to 4 may ask for one of their own."""
    api_version: int = 9


class TransactionalCommitRequest(NamedTuple):
    """TxnOffsetCommit; answered as a commit is."""

    group_id: str
    transactional_id: str
    producer_id: int
    producer_epoch: int
    member_id: str
    generation: int
    instance_id: str | None
    partitions: tuple[CommittedPartition, ...]
    api_version: int = 3


class OffsetFetchRequest(NamedTuple):
    group_id: str
    partitions: tuple[tuple[str, int], ...] | None
    """``None``: all that the group has."""
    member_id: str | None = None
    member_epoch: int = -1
    require_stable: bool = False


class FetchedOffset(NamedTuple):
    topic: str
    partition: int
    offset: int = -1
    leader_epoch: int = -1
    metadata: str | None = ""
    error: KafkaError | None = None


OffsetFetchResponse = tuple[FetchedOffset, ...]


class OffsetDeleteRequest(NamedTuple):
    """Answered with one error or ``None`` for each partition, in order."""

    group_id: str
    partitions: tuple[tuple[str, int], ...]


# Looking


class GroupListing(NamedTuple):
    group_id: str
    protocol_type: str
    state: str
    type: str
    """``classic`` or ``consumer``."""
    member_count: int


class DescribedMember(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class ClassicDescription(NamedTuple):
    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[DescribedMember, ...]
    generation: int
    leader: str | None


class DescribedConsumer(NamedTuple):
    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    regex: str | None
    assigned: TopicIdPartitions
    target: TopicIdPartitions
    type: int
    """0 speaks the classic protocol, 1 the consumer protocol; -1 unknown."""


class ConsumerDescription(NamedTuple):
    group_id: str
    state: str
    epoch: int
    target_epoch: int
    assignor: str
    members: tuple[DescribedConsumer, ...]
