"""The durable state of a consumer group: what its records say, and what follows from it alone.

Changed by replay only, live or at loading. A compacted log may give records in another order than they were
written in for different keys, so that no order is demanded. Must not know requests, time, nor topics' metadata.
"""

from collections import Counter

from lamina.coordinators.consumer_member import ASSIGNMENT_REMOVED, ConsumerMember
from lamina.coordinators.partitions_by_topic import NO_PARTITIONS, each
from lamina.coordinators.reconciliation import is_reconciled
from lamina.coordinators.records.group_records import (
    ConsumerGroupKey,
    ConsumerGroupValue,
    ConsumerMemberKey,
    ConsumerMemberValue,
    CurrentAssignmentKey,
    CurrentAssignmentValue,
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

NO_TARGET_EPOCH = 0


class ConsumerState:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.metadata_hash = 0
        self.target_epoch = NO_TARGET_EPOCH
        self.has_partition_metadata = False
        """Whether an earlier version wrote a record that is no longer needed."""
        self.members: dict[str, ConsumerMember] = {}
        self.targets: dict[str, TopicIdPartitions] = {}
        self.regexes: dict[str, RegexValue] = {}
        """The topics that expressions stand for, of those that were resolved."""
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.regex_subscribers: Counter[str] = Counter()
        self.classic_count = 0
        self._holders: dict[tuple[bytes, int], str] = {}
        self._subscribed_names: frozenset[str] | None = None

    @property
    def name(self) -> str:
        """The state's name, as clients are told it."""
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        if all(is_reconciled(member.current_assignment, self.target_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def subscribed_names(self) -> frozenset[str]:
        """The topics that any member subscribes to, by name or by an expression that was resolved."""
        if self._subscribed_names is None:
            self._subscribed_names = frozenset().union(
                *(member.subscription.topics for member in self.members.values()),
                *(value.topics for regex, value in self.regexes.items() if self.regex_subscribers[regex]),
            )
        return self._subscribed_names

    def is_held(self, topic_id: bytes, partition: int) -> bool:
        """Whether a member has the partition or has yet to give it up."""
        return (topic_id, partition) in self._holders

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member_id: str) -> TopicIdPartitions:
        return self.targets.get(member_id, NO_PARTITIONS)

    def replay(self, record: GroupRecord) -> None:
        match record:
            case GroupRecord(ConsumerGroupKey(), value):
                stored = value if isinstance(value, ConsumerGroupValue) else ConsumerGroupValue(0)
                self.epoch, self.metadata_hash = stored.epoch, stored.metadata_hash
            case GroupRecord(PartitionMetadataKey(), value):
                self.has_partition_metadata = value is not None
            case GroupRecord(ConsumerMemberKey(_, member_id), ConsumerMemberValue() as subscription):
                self._put(self._member(member_id)._replace(subscription=subscription))
            case GroupRecord(ConsumerMemberKey(_, member_id), None):
                self._remove(member_id)
            case GroupRecord(TargetEpochKey(), value):
                self.target_epoch = value.epoch if isinstance(value, TargetEpochValue) else NO_TARGET_EPOCH
            case GroupRecord(TargetAssignmentKey(_, member_id), TargetAssignmentValue(partitions)):
                self.targets[member_id] = partitions
            case GroupRecord(TargetAssignmentKey(_, member_id), None):
                self.targets.pop(member_id, None)
            case GroupRecord(CurrentAssignmentKey(_, member_id), CurrentAssignmentValue() as current_assignment):
                self._put(self._member(member_id)._replace(current_assignment=current_assignment))
            case GroupRecord(CurrentAssignmentKey(_, member_id), None):
                if member_id in self.members:
                    self._put(self.members[member_id]._replace(current_assignment=ASSIGNMENT_REMOVED))
            case GroupRecord(RegexKey(_, regex), RegexValue() as resolved):
                self.regexes[regex] = resolved
                self._subscribed_names = None
            case GroupRecord(RegexKey(_, regex), None):
                self.regexes.pop(regex, None)
                self._subscribed_names = None

    def _member(self, member_id: str) -> ConsumerMember:
        return self.members.get(member_id) or ConsumerMember(member_id)

    def _put(self, member: ConsumerMember) -> None:
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if old is None or old.subscription != member.subscription:
            if old is not None:
                self._remove_subscription(old)
            self._add_subscription(member)
        if old is None or old.current_assignment != member.current_assignment:
            if old is not None:
                self._release(old)
            for held in (member.current_assignment.assigned, member.current_assignment.pending_revocation):
                self._holders.update(dict.fromkeys(each(held), member.member_id))

    def _remove(self, member_id: str) -> None:
        old = self.members.pop(member_id, None)
        if old is not None:
            self._remove_subscription(old)
            self._release(old)

    def _add_subscription(self, member: ConsumerMember) -> None:
        self._subscribed_names = None
        self.classic_count += member.is_classic
        if member.regex is not None:
            self.regex_subscribers[member.regex] += 1
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def _remove_subscription(self, member: ConsumerMember) -> None:
        self._subscribed_names = None
        self.classic_count -= member.is_classic
        if member.regex is not None:
            self.regex_subscribers[member.regex] -= 1
            if not self.regex_subscribers[member.regex]:
                del self.regex_subscribers[member.regex]
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member.member_id:
            del self.static_members[member.instance_id]

    def _release(self, member: ConsumerMember) -> None:
        """A partition that another member was given meanwhile stays with that one."""
        for held in (member.current_assignment.assigned, member.current_assignment.pending_revocation):
            for partition in each(held):
                if self._holders.get(partition) == member.member_id:
                    del self._holders[partition]
