"""The records of a consumer group, alone and in the sets that belong together.

Owns their order: what refers to something comes after it, and goes before it. Must not know why they are written.
"""

from collections.abc import Iterable

from lamina.coordinators.consumer_member import ConsumerMember
from lamina.coordinators.records.group_records import (
    ConsumerGroupKey,
    ConsumerGroupValue,
    ConsumerMemberKey,
    CurrentAssignmentKey,
    GroupRecord,
    PartitionMetadataKey,
    RegexKey,
    RegexValue,
    TargetAssignmentKey,
    TargetAssignmentValue,
    TargetEpochKey,
    TargetEpochValue,
    TopicIdPartitions,
)


def group_record(group_id: str, epoch: int, metadata_hash: int) -> GroupRecord:
    return GroupRecord(ConsumerGroupKey(group_id), ConsumerGroupValue(epoch, metadata_hash))


def member_record(group_id: str, member: ConsumerMember) -> GroupRecord:
    return GroupRecord(ConsumerMemberKey(group_id, member.member_id), member.subscription)


def target_record(group_id: str, member_id: str, target: TopicIdPartitions) -> GroupRecord:
    return GroupRecord(TargetAssignmentKey(group_id, member_id), TargetAssignmentValue(target))


def target_epoch_record(group_id: str, epoch: int) -> GroupRecord:
    return GroupRecord(TargetEpochKey(group_id), TargetEpochValue(epoch))


def current_record(group_id: str, member: ConsumerMember) -> GroupRecord:
    return GroupRecord(CurrentAssignmentKey(group_id, member.member_id), member.current_assignment)


def regex_record(group_id: str, regex: str, resolved: RegexValue | None) -> GroupRecord:
    return GroupRecord(RegexKey(group_id, regex), resolved)


def member_tombstones(group_id: str, member_id: str) -> list[GroupRecord]:
    return [
        GroupRecord(CurrentAssignmentKey(group_id, member_id), None),
        GroupRecord(TargetAssignmentKey(group_id, member_id), None),
        GroupRecord(ConsumerMemberKey(group_id, member_id), None),
    ]


def partition_metadata_tombstone(group_id: str) -> GroupRecord:
    return GroupRecord(PartitionMetadataKey(group_id), None)


def group_tombstones(
    group_id: str, member_ids: Iterable[str], regexes: Iterable[str], has_partition_metadata: bool
) -> list[GroupRecord]:
    """Everything that is known of a group."""
    member_ids = tuple(member_ids)
    tombstones = [GroupRecord(CurrentAssignmentKey(group_id, member_id), None) for member_id in member_ids]
    tombstones += [GroupRecord(TargetAssignmentKey(group_id, member_id), None) for member_id in member_ids]
    tombstones.append(GroupRecord(TargetEpochKey(group_id), None))
    tombstones += [GroupRecord(ConsumerMemberKey(group_id, member_id), None) for member_id in member_ids]
    tombstones += [regex_record(group_id, regex, None) for regex in regexes]
    if has_partition_metadata:
        tombstones.append(partition_metadata_tombstone(group_id))
    tombstones.append(GroupRecord(ConsumerGroupKey(group_id), None))
    return tombstones
