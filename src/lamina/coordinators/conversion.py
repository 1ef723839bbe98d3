"""Groups that change their protocol while their members live: which may, and what they are afterwards.

Owns both ways: the records of the consumer group that a classic group becomes, and the classic group that a consumer
group becomes. Works on values; must not know either group's machine.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

from lamina.coordinators.consumer_member import ConsumerMember
from lamina.coordinators.consumer_records import (
    current_record,
    group_record,
    member_record,
    target_epoch_record,
    target_record,
)
from lamina.coordinators.decision import Now
from lamina.coordinators.group_context import GroupSettings
from lamina.coordinators.partitions_by_topic import NO_PARTITIONS, by_id, by_name
from lamina.coordinators.reconciliation import MemberState
from lamina.coordinators.records.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    read_assignment,
    read_subscription,
    write_assignment,
)
from lamina.coordinators.records.group_records import (
    ClassicGroupKey,
    ClassicGroupValue,
    ClassicMemberMetadata,
    ClassicMemberValue,
    ConsumerMemberValue,
    CurrentAssignmentValue,
    GroupRecord,
    TopicIdPartitions,
)
from lamina.coordinators.target_assignment import NOTHING_SUBSCRIBED_HASH
from lamina.errors import GroupIdNotFound, KafkaError
from lamina.image.image import Image


class ClassicMemberSnapshot(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes


class ClassicGroupSnapshot(NamedTuple):
    """A classic group as it is, whatever state it is in."""

    group_id: str
    protocol_type: str | None
    protocol: str | None
    generation: int
    members: tuple[ClassicMemberSnapshot, ...]


# From classic to consumer


def upgrade(group: ClassicGroupSnapshot, image: Image, settings: GroupSettings) -> list[GroupRecord]:
    """The records that make a consumer group of a classic one, with the same members and the last assignment.

    Raises :class:`~lamina.errors.GroupIdNotFound` if it has to stay classic.
    """
    _check_upgrade(group, settings)
    try:
        members = [_member(member, group, image) for member in group.members]
    except KafkaError as error:
        raise GroupIdNotFound(f"group {group.group_id} is classic and cannot be upgraded: {error}") from error
    group_id = group.group_id
    return [
        *(member_record(group_id, member) for member in members),
        group_record(group_id, group.generation, NOTHING_SUBSCRIBED_HASH),
        *(target_record(group_id, member.member_id, member.current_assignment.assigned) for member in members),
        target_epoch_record(group_id, group.generation),
        *(current_record(group_id, member) for member in members),
    ]


def _check_upgrade(group: ClassicGroupSnapshot, settings: GroupSettings) -> None:
    if settings.consumer_migration_policy not in ("upgrade", "bidirectional"):
        raise GroupIdNotFound(f"group {group.group_id} is not a consumer group, and upgrades are disabled")
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise GroupIdNotFound(f"group {group.group_id} is not of consumers, but of type {group.protocol_type!r}")
    if len(group.members) > settings.consumer_max_size:
        raise GroupIdNotFound(f"group {group.group_id} is classic and too large for a consumer group")


def _member(member: ClassicMemberSnapshot, group: ClassicGroupSnapshot, image: Image) -> ConsumerMember:
    metadata = dict(member.protocols).get(group.protocol or "", member.protocols[0][1])
    subscription = read_subscription(metadata)
    assigned = NO_PARTITIONS
    if member.assignment:
        assignment = read_assignment(member.assignment)
        if assignment.user_data:
            raise GroupIdNotFound("what its assignor keeps in the members' assignments would be lost")
        assigned = by_id(assignment.partitions, image)
    return ConsumerMember(
        member.member_id,
        ConsumerMemberValue(
            member.instance_id,
            subscription.rack_id,
            member.client_id,
            member.client_host,
            tuple(sorted(set(subscription.topics))),
            None,
            member.rebalance_timeout_ms,
            None,
            ClassicMemberMetadata(member.session_timeout_ms, member.protocols),
        ),
        CurrentAssignmentValue(group.generation, group.generation, MemberState.STABLE.value, assigned, NO_PARTITIONS),
    )


# From consumer to classic


def may_downgrade(
    leaving: Collection[ConsumerMember], remaining: Collection[ConsumerMember], settings: GroupSettings
) -> bool:
    """Whether members that leave were the last of the consumer protocol, and those that stay may go on without it."""
    return (
        bool(remaining)
        and all(member.is_classic for member in remaining)
        and not all(member.is_classic for member in leaving)
        and settings.consumer_migration_policy in ("downgrade", "bidirectional")
        and len(remaining) <= settings.max_size
        and bool(_common_protocols(remaining))
    )


def downgrade(
    group_id: str,
    generation: int,
    members: Collection[ConsumerMember],
    targets: Mapping[str, TopicIdPartitions],
    now: Now,
    image: Image,
) -> GroupRecord:
    """The classic group of these members, with their targets as its assignment."""
    protocol = _chosen_protocol(members)

    def stored(member: ConsumerMember) -> ClassicMemberValue:
        metadata = _protocols(member)[protocol]
        target = by_name(targets.get(member.member_id, NO_PARTITIONS), image)
        return ClassicMemberValue(
            member.member_id,
            member.instance_id,
            member.subscription.client_id,
            member.subscription.client_host,
            member.subscription.rebalance_timeout_ms,
            member.subscription.classic.session_timeout_ms if member.subscription.classic is not None else 0,
            metadata,
            write_assignment(target, read_subscription(metadata).version),
        )

    values = tuple(stored(member) for member in members)
    leader = values[0].member_id
    return GroupRecord(
        ClassicGroupKey(group_id),
        ClassicGroupValue(CONSUMER_PROTOCOL_TYPE, generation, protocol, leader, now.wall_ms, values),
    )


def _protocols(member: ConsumerMember) -> dict[str, bytes]:
    """In the member's order of preference."""
    return {} if member.subscription.classic is None else dict(member.subscription.classic.protocols)


def _common_protocols(members: Collection[ConsumerMember]) -> set[str]:
    return set.intersection(*(set(_protocols(member)) for member in members))


def _chosen_protocol(members: Collection[ConsumerMember]) -> str:
    """The one that most members prefer of those that all of them know."""
    candidates = _common_protocols(members)
    votes = Counter(next(name for name in _protocols(member) if name in candidates) for member in members)
    return votes.most_common(1)[0][0]
