"""The groups that live in one partition of ``__consumer_offsets``, and their committed offsets.

Owns which groups there are, of which kind, and sends every request to its group. A group that has offsets and nothing
else, as simple consumers leave it, is not kept: it is an empty classic group when it is looked up. Must not know how
members agree.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from lamina.coordinators import hosted_classic, offset_requests
from lamina.coordinators.classic import ClassicGroup
from lamina.coordinators.classic_state import State
from lamina.coordinators.consumer import ConsumerGroup, upgrade_and_join
from lamina.coordinators.consumer_member import JOINING_EPOCH
from lamina.coordinators.decision import Now, Producer, TimerName, Waiter
from lamina.coordinators.group_context import GroupContext
from lamina.coordinators.group_requests import (
    ClassicDescription,
    ConsumerDescription,
    ConsumerHeartbeatRequest,
    GroupListing,
    HeartbeatRequest,
    JoinRequest,
    LeaveRequest,
    LeaveResponse,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncRequest,
    TransactionalCommitRequest,
)
from lamina.coordinators.offset_requests import Group, GroupDecision
from lamina.coordinators.offsets import AT_A_TIME, Offsets, StoredOffset
from lamina.coordinators.records.group_records import (
    ClassicGroupKey,
    ClassicGroupValue,
    ConsumerGroupKey,
    GroupRecord,
    OffsetKey,
    OffsetValue,
)
from lamina.errors import (
    GroupIdNotFound,
    InvalidGroupId,
    InvalidSessionTimeout,
    UnknownMemberId,
)

DELETE_GONE: TimerName = ("delete offsets of deleted topics",)


class GroupCounts:
    """What groups did since the broker started."""

    def __init__(self) -> None:
        self.committed_offsets = 0
        self.rebalances: Counter[str] = Counter()
        """By the group's type: generations of classic groups, epochs of consumer groups."""


class GroupShard:
    def __init__(self, context_of: Callable[[str], GroupContext], counts: GroupCounts) -> None:
        self._context_of = context_of
        """The settings and topics that a decision about a group depends on."""
        self._groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self._gone: list[StoredOffset] = []
        """Soft: offsets in topics that are deleted, which are still to be."""
        self._counts = counts
        self._is_loaded = False

    # Durable state

    def replay(self, record: GroupRecord, producer: Producer | None) -> None:
        key, value = record
        if type(key) is OffsetKey:
            assert value is None or type(value) is OffsetValue
            self.offsets.replay(key, value, None if producer is None else producer.id)
            if self._is_loaded and value is not None:
                self._counts.committed_offsets += 1
            return
        group = self._groups.get(key.group_id)
        if type(key) is ClassicGroupKey:
            assert value is None or type(value) is ClassicGroupValue
            self._replay_classic(key.group_id, group, value)
            return
        if not isinstance(group, ConsumerGroup):
            if value is None:
                return
            group = self._groups[key.group_id] = ConsumerGroup(key.group_id)
        epoch = group.state.epoch
        group.replay(record)
        if self._is_loaded and group.state.epoch > epoch:
            self._counts.rebalances["consumer"] += 1
        if type(key) is ConsumerGroupKey and value is None:
            del self._groups[key.group_id]

    def _replay_classic(self, group_id: str, group: Group | None, value: ClassicGroupValue | None) -> None:
        if value is None:
            if isinstance(group, ClassicGroup):
                del self._groups[group_id]
            return
        is_downgrade = self._is_loaded and not isinstance(group, ClassicGroup)
        if not isinstance(group, ClassicGroup):
            group = self._groups[group_id] = self._new_classic(group_id)
        if self._is_loaded and value.members and (group.stored is None or value.generation > group.stored.generation):
            self._counts.rebalances["classic"] += 1
        group.replay(value)
        if is_downgrade:
            # Its members live on.
            group.take_up(value)

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        self.offsets.end_transaction(producer_id, is_committed=is_committed)

    def loaded(self, now: Now) -> GroupDecision:
        self._is_loaded = True
        decision = GroupDecision()
        for group in self._groups.values():
            decision.add(
                group.loaded(now) if isinstance(group, ClassicGroup) else group.loaded(now, self._context(group))
            )
        return decision

    # The classic protocol

    def join(self, request: JoinRequest, waiter: Waiter, now: Now) -> GroupDecision:
        _check_group_id(request.group_id)
        settings = self._context_of(request.group_id).settings
        if not settings.min_session_timeout_ms <= request.session_timeout_ms <= settings.max_session_timeout_ms:
            raise InvalidSessionTimeout(
                f"a session lasts {settings.min_session_timeout_ms} to {settings.max_session_timeout_ms} ms here, "
                f"not {request.session_timeout_ms}"
            )
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            if group.state.members:
                return hosted_classic.join(group, request, waiter, now, self._context(group))
            return self._join_emptied(group, request, waiter, now)
        if group is None:
            if request.member_id and not self.offsets.has_any(request.group_id):
                raise UnknownMemberId(f"there is no group {request.group_id}")
            group = self._new_classic(request.group_id)
        decision = group.join(request, waiter, now)
        self._groups[request.group_id] = group
        return decision

    def _join_emptied(self, group: ConsumerGroup, request: JoinRequest, waiter: Waiter, now: Now) -> GroupDecision:
        """A consumer group without members becomes a classic one with its first classic member."""
        classic = self._new_classic(group.group_id)
        classic.generation = group.state.epoch
        decision = GroupDecision([*group.tombstones(), classic.record()])
        decision.add(classic.join(request, waiter, now))
        self._groups[group.group_id] = classic
        return decision

    def sync(self, request: SyncRequest, waiter: Waiter, now: Now) -> GroupDecision:
        group = self._member_group(request.group_id)
        if isinstance(group, ConsumerGroup):
            return hosted_classic.sync(group, request, waiter, now, self._context(group))
        return group.sync(request, waiter, now)

    def heartbeat(self, request: HeartbeatRequest, waiter: Waiter, now: Now) -> GroupDecision:
        group = self._member_group(request.group_id)
        if isinstance(group, ConsumerGroup):
            return hosted_classic.heartbeat(group, request, waiter, now, self._context(group))
        return group.heartbeat(request, waiter, now)

    def leave(self, request: LeaveRequest, waiter: Waiter, now: Now) -> GroupDecision:
        _check_group_id(request.group_id)
        group = self._groups.get(request.group_id)
        if group is None:
            unknown = UnknownMemberId(f"there is no group {request.group_id}")
            decision = GroupDecision(is_refusable=True)
            decision.reply(waiter, LeaveResponse(tuple((member, unknown) for member in request.members)))
            return decision
        if isinstance(group, ConsumerGroup):
            return hosted_classic.leave(group, request, waiter, now, self._context(group))
        return group.leave(request, waiter, now)

    def _member_group(self, group_id: str) -> Group:
        """The group that a member names in its request."""
        _check_group_id(group_id)
        group = self._groups.get(group_id)
        if group is None:
            raise UnknownMemberId(f"there is no group {group_id}")
        return group

    # The consumer protocol

    def consumer_heartbeat(self, request: ConsumerHeartbeatRequest, waiter: Waiter, now: Now) -> GroupDecision:
        group = self._groups.get(request.group_id)
        context = self._context_of(request.group_id)
        if isinstance(group, ConsumerGroup):
            return group.heartbeat(request, waiter, now, context)
        if request.member_epoch != JOINING_EPOCH and (group is None or not group.members):
            raise GroupIdNotFound(f"there is no consumer group {request.group_id}")
        if group is not None and group.members:
            upgraded, decision = upgrade_and_join(group.snapshot(), request, waiter, now, context)
            decision.effects = [*group.give_up(), *decision.effects]
        else:
            upgraded = ConsumerGroup(request.group_id)
            decision = GroupDecision([] if group is None else group.tombstones(), is_refusable=True)
            decision.add(upgraded.heartbeat(request, waiter, now, context))
        decision.soft_changes.append(lambda: self._take_soft_state(upgraded))
        return decision

    def _take_soft_state(self, decided: ConsumerGroup) -> None:
        """The group that was decided on is not the one that the records made; it knows what is not stored."""
        group = self._groups.get(decided.group_id)
        if isinstance(group, ConsumerGroup):
            group.soft = decided.soft

    def resolved(self, group_id: str, results: Mapping[str, tuple[str, ...]], now: Now) -> GroupDecision:
        """What an earlier decision wanted to know of regular expressions."""
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return GroupDecision()
        return group.resolved(results, now, self._context(group))

    # Offsets

    def commit(self, request: OffsetCommitRequest, waiter: Waiter, now: Now) -> GroupDecision:
        """Also for the group without a name, as clients of old used it."""
        group_id = request.group_id
        limit_bytes = self._context_of(group_id).settings.offset_metadata_max_bytes
        return offset_requests.commit(self.offsets, self._group(group_id), request, waiter, now, limit_bytes)

    def commit_in_transaction(self, request: TransactionalCommitRequest, waiter: Waiter, now: Now) -> GroupDecision:
        group_id = request.group_id
        _check_group_id(group_id)
        limit_bytes = self._context_of(group_id).settings.offset_metadata_max_bytes
        group = self._group(group_id)
        return offset_requests.commit_in_transaction(self.offsets, group, request, waiter, now, limit_bytes)

    def fetch_offsets(self, request: OffsetFetchRequest, waiter: Waiter) -> GroupDecision:
        return offset_requests.fetch(self.offsets, self._groups.get(request.group_id), request, waiter)

    def delete_offsets(self, request: OffsetDeleteRequest, waiter: Waiter) -> GroupDecision:
        _check_group_id(request.group_id)
        return offset_requests.delete(self.offsets, self._required(request.group_id), request, waiter)

    def topics_deleted(self, topics: frozenset[str], now: Now) -> GroupDecision:
        """The offsets that are there now go in the next turns."""
        gone = self.offsets.of_topics(topics)
        if not gone:
            return GroupDecision()
        decision = GroupDecision(soft_changes=[lambda: self._gone.extend(gone)], is_refusable=True)
        decision.set_timer(DELETE_GONE, now.monotonic_ms)
        return decision

    def _delete_gone(self, now: Now) -> GroupDecision:
        some = self._gone[:AT_A_TIME]
        decision = GroupDecision(self.offsets.delete_stored(some), is_atomic=False, is_refusable=True)

        def deleted() -> None:
            del self._gone[: len(some)]

        decision.soft_changes.append(deleted)
        if len(self._gone) > len(some):
            decision.set_timer(DELETE_GONE, now.monotonic_ms)
        return decision

    def expire(self, group_id: str, now: Now) -> GroupDecision:
        """Remove expired offsets, not more than fit into a turn, and with the last of them a group without members."""
        decision = GroupDecision(is_atomic=False, is_refusable=True)
        group = self._group(group_id)
        if group is None:
            return decision
        expiry = group.expiry()
        retention_ms = self._context_of(group_id).settings.offsets_retention_ms
        if expiry is not None:
            decision.records = self.offsets.expired(group_id, expiry, now.wall_ms, retention_ms)
        is_left = len(decision.records) < self.offsets.count(group_id) or self.offsets.is_in_transaction(group_id)
        if not is_left and group.is_abandoned:
            decision.records += group.tombstones()
            decision.soft_changes.append(lambda: self._forget_unstored(group))
        return decision

    def _forget_unstored(self, group: Group) -> None:
        """No tombstone takes away a group that was never in the log."""
        if isinstance(group, ClassicGroup) and group.stored is None:
            self._groups.pop(group.group_id, None)

    # Groups as a whole

    def group_ids(self) -> Iterator[str]:
        """All of them, as they were when this began: groups may come and go between two of them."""
        yield from list(self._groups)
        yield from (group_id for group_id in self.offsets.groups() if group_id not in self._groups)

    def listings(self) -> Iterator[GroupListing]:
        """Of all groups; one that went since this began is left out."""
        for group_id in self.group_ids():
            group = self._groups.get(group_id)
            if isinstance(group, ClassicGroup):
                state = group.state.value
                yield GroupListing(group_id, group.protocol_type or "", state, "classic", len(group.members))
            elif group is not None:
                yield group.listing()
            elif self.offsets.has_any(group_id):
                yield GroupListing(group_id, "", State.EMPTY.value, "classic", 0)

    def describe(self, group_id: str) -> ClassicDescription:
        group = self._group(group_id)
        if not isinstance(group, ClassicGroup):
            raise GroupIdNotFound(f"there is no classic group {group_id}")
        return group.describe()

    def describe_consumers(self, group_id: str) -> ConsumerDescription:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            raise GroupIdNotFound(f"there is no consumer group {group_id}")
        return group.describe(self._context(group))

    def delete(self, group_id: str, waiter: Waiter) -> GroupDecision:
        """Answered with whether it is gone: of a group with many offsets only some of these go in one turn."""
        group = self._required(group_id)
        group.check_delete()
        records, has_more = self.offsets.delete_all(group_id)
        decision = GroupDecision(records, is_atomic=False, is_refusable=True)
        if not has_more:
            decision.records += group.tombstones()
            decision.soft_changes.append(lambda: self._forget_unstored(group))
        decision.reply(waiter, not has_more)
        return decision

    # Time

    def on_timer(self, name: TimerName, now: Now) -> GroupDecision:
        if name == DELETE_GONE:
            return self._delete_gone(now)
        group = self._groups.get(name[0])
        if isinstance(group, ConsumerGroup):
            return group.on_timer(name, now, self._context(group))
        if isinstance(group, ClassicGroup):
            return group.on_timer(name, now)
        return GroupDecision()

    # Finding a group

    def _group(self, group_id: str) -> Group | None:
        group = self._groups.get(group_id)
        if group is None and self.offsets.has_any(group_id):
            return self._new_classic(group_id)
        return group

    def _required(self, group_id: str) -> Group:
        group = self._group(group_id)
        if group is None:
            raise GroupIdNotFound(f"there is no group {group_id}")
        return group

    def _new_classic(self, group_id: str) -> ClassicGroup:
        return ClassicGroup(group_id, self._context_of(group_id).settings)

    def _context(self, group: ConsumerGroup) -> GroupContext:
        return self._context_of(group.group_id)


def _check_group_id(group_id: str) -> None:
    if not group_id:
        raise InvalidGroupId("a group must have a name")
