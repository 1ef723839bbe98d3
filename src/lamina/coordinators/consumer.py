"""A consumer group (KIP-848): members send their subscription and what they own, and get their assignment.

Owns who may join, stay and leave, and the responses. The durable state is
:class:`~lamina.coordinators.consumer_state.ConsumerState` and changes by replay only. Must not know the wire, nor
other groups.
"""

from collections.abc import Iterable, Mapping

from lamina.coordinators.consumer_member import JOINING_EPOCH, LEAVING_FOR_A_MOMENT_EPOCH, ConsumerMember
from lamina.coordinators.consumer_records import current_record, group_tombstones
from lamina.coordinators.consumer_state import ConsumerState
from lamina.coordinators.consumer_step import ConsumerSoftState, ConsumerStep
from lamina.coordinators.conversion import ClassicGroupSnapshot, upgrade
from lamina.coordinators.decision import Decision, Now, TimerName, Waiter
from lamina.coordinators.group_context import GroupContext
from lamina.coordinators.group_requests import (
    ConsumerDescription,
    ConsumerHeartbeatRequest,
    ConsumerHeartbeatResponse,
    DescribedConsumer,
    GroupListing,
)
from lamina.coordinators.heartbeat_rules import check_epoch, check_heartbeat, is_full, is_leaving
from lamina.coordinators.offsets import Expiry
from lamina.coordinators.partitions_by_topic import NO_PARTITIONS
from lamina.coordinators.records.group_records import ClassicGroupKey, GroupRecord, TopicIdPartitions
from lamina.coordinators.target_assignment import preferred_assignor
from lamina.errors import (
    FencedInstanceId,
    GroupMaxSizeReached,
    IllegalGeneration,
    NonEmptyGroup,
    StaleMemberEpoch,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedVersion,
)

GroupDecision = Decision[GroupRecord]
FIRST_COMMIT_VERSION_WITH_EPOCHS = 9


class ConsumerGroup:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.state = ConsumerState(group_id)
        self.soft = ConsumerSoftState()

    def replay(self, record: GroupRecord) -> None:
        self.state.replay(record)

    # The consumer protocol

    def heartbeat(
        self, request: ConsumerHeartbeatRequest, waiter: Waiter, now: Now, context: GroupContext
    ) -> GroupDecision:
        check_heartbeat(request, context.settings)
        step = self.step(now, context)
        if is_leaving(request):
            return self._leave(request, waiter, step)
        member_id = request.member_id or request.new_member_id
        member = self._sender(request, member_id, context, step)
        updated = step.advance(member, member.after(request), request.owned, request.may_describe)
        if member.is_classic:
            step.cancel_timers(member)
        step.set_timer("session", member_id, context.settings.consumer_session_timeout_ms)
        is_told = is_full(request) or updated.current_assignment.assigned != member.current_assignment.assigned
        step.decision.reply(
            waiter,
            ConsumerHeartbeatResponse(
                member_id,
                updated.epoch,
                context.settings.consumer_heartbeat_interval_ms,
                updated.current_assignment.assigned if is_told else None,
            ),
        )
        return step.decision

    def _sender(
        self, request: ConsumerHeartbeatRequest, member_id: str, context: GroupContext, step: ConsumerStep
    ) -> ConsumerMember:
        """The member that a heartbeat comes from, as it was before; a new one has said nothing yet."""
        if request.member_epoch == JOINING_EPOCH:
            return self._joiner(request, member_id, context, step)
        member = self.known(member_id, request.instance_id)
        check_epoch(member, request.member_epoch, request.owned)
        return member

    def _joiner(
        self, request: ConsumerHeartbeatRequest, member_id: str, context: GroupContext, step: ConsumerStep
    ) -> ConsumerMember:
        """A member may join again, whatever its epoch: it has given up everything. So may a static one that retries."""
        self.check_size(member_id, request.instance_id, context)
        incumbent = self.state.static_member(request.instance_id)
        if incumbent is None:
            return self.state.members.get(member_id) or ConsumerMember(member_id)
        is_released = incumbent.epoch == LEAVING_FOR_A_MOMENT_EPOCH or incumbent.is_classic
        if is_released:
            return step.take_over(incumbent, member_id)
        if incumbent.member_id != member_id:
            raise UnreleasedInstanceId(
                f"instance id {request.instance_id!r} of group {self.group_id} is in use by {incumbent.member_id}"
            )
        return incumbent

    def _leave(self, request: ConsumerHeartbeatRequest, waiter: Waiter, step: ConsumerStep) -> GroupDecision:
        member = self.known(request.member_id, request.instance_id)
        if request.member_epoch == LEAVING_FOR_A_MOMENT_EPOCH:
            gone = member.current_assignment._replace(
                member_epoch=LEAVING_FOR_A_MOMENT_EPOCH, pending_revocation=NO_PARTITIONS
            )
            step.decision.records.append(current_record(self.group_id, member._replace(current_assignment=gone)))
        else:
            step.remove((member,))
        step.decision.reply(waiter, ConsumerHeartbeatResponse(member.member_id, request.member_epoch, 0, None))
        return step.decision

    def resolved(self, results: Mapping[str, Iterable[str]], now: Now, context: GroupContext) -> GroupDecision:
        """The topics that expressions stand for, as an earlier decision wanted to know; none if that failed."""
        step = self.step(now, context)
        step.take_resolved(results)
        if results:
            step.decision.if_too_large = lambda: self.resolved({}, now, context)
        return step.decision

    # Time

    def loaded(self, now: Now, context: GroupContext) -> GroupDecision:
        """Every member gets a full session timeout, and those that are revoking their time to do so."""
        step = self.step(now, context)
        for member in self.state.members.values():
            classic = member.subscription.classic
            timeout_ms = context.settings.consumer_session_timeout_ms if classic is None else classic.session_timeout_ms
            step.set_timer("session", member.member_id, timeout_ms)
            step.set_rebalance_timer(member)
        return step.decision

    def on_timer(self, name: TimerName, now: Now, context: GroupContext) -> GroupDecision:
        """Fence a member whose session or rebalance timeout has passed."""
        step = self.step(now, context)
        match name:
            case (_, "session" | "join" | "sync", member_id):
                member = self.state.members.get(member_id)
            case (_, "rebalance", member_id, epoch):
                member = self.state.members.get(member_id)
                if member is not None and not (member.is_revoking and str(member.epoch) == epoch):
                    member = None
            case _:
                member = None
        if member is not None:
            step.remove((member,))
        return step.decision

    # Looking

    def listing(self) -> GroupListing:
        return GroupListing(self.group_id, "consumer", self.state.name, "consumer", len(self.state.members))

    def describe(self, context: GroupContext) -> ConsumerDescription:
        def known(partitions: TopicIdPartitions) -> TopicIdPartitions:
            names = context.image.topic_names
            return {topic_id: some for topic_id, some in partitions.items() if topic_id in names}

        members = tuple(
            DescribedConsumer(
                member.member_id,
                member.instance_id,
                member.subscription.rack_id,
                member.epoch,
                member.subscription.client_id,
                member.subscription.client_host,
                member.subscription.topics,
                member.subscription.regex,
                known(member.current_assignment.assigned),
                known(self.state.target_of(member.member_id)),
                0 if member.is_classic else 1,
            )
            for member in self.state.members.values()
        )
        assignor = preferred_assignor(self.state.members.values(), context.settings.consumer_assignors)
        return ConsumerDescription(
            self.group_id, self.state.name, self.state.epoch, self.state.target_epoch, assignor, members
        )

    # Offsets and deletion

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.state.subscribed_names

    def check_commit(self, member_id: str, epoch: int, is_transactional: bool, api_version: int) -> None:
        """Refuse a commit that is not from a member at this epoch; any client may commit for an empty group."""
        if epoch < 0 and not self.state.members:
            return
        member = self.known(member_id, None)
        if not is_transactional and not member.is_classic and api_version < FIRST_COMMIT_VERSION_WITH_EPOCHS:
            raise UnsupportedVersion(
                f"members of the consumer protocol commit with version {FIRST_COMMIT_VERSION_WITH_EPOCHS} or above"
            )
        _check_current(member, epoch)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """A client that does not claim to be a member may always fetch."""
        if member_id is None and epoch < 0:
            return
        _check_current(self.known(member_id or "", None), epoch)

    def expiry(self) -> Expiry:
        """Offsets of topics that are not read grow old from their commit on."""
        return Expiry(kept_topics=self.state.subscribed_names)

    @property
    def is_abandoned(self) -> bool:
        return not self.state.members

    def check_delete(self) -> None:
        if self.state.members:
            raise NonEmptyGroup(f"group {self.group_id} has members")

    def tombstones(self) -> list[GroupRecord]:
        """The records that delete the group."""
        state = self.state
        return group_tombstones(self.group_id, state.members, state.regexes, state.has_partition_metadata)

    # Members

    def check_size(self, member_id: str, instance_id: str | None, context: GroupContext) -> None:
        """A full group accepts its own members only, and those that take a static member's place."""
        is_known = member_id in self.state.members or instance_id in self.state.static_members
        if len(self.state.members) >= context.settings.consumer_max_size and not is_known:
            raise GroupMaxSizeReached(f"the group has its maximum of {context.settings.consumer_max_size} members")

    def known(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        """The member with this id; a static one must still own its instance id."""
        if instance_id is None:
            member = self.state.members.get(member_id)
            if member is None:
                raise UnknownMemberId(f"member {member_id} is not a member of group {self.group_id}")
            return member
        member = self.state.static_member(instance_id)
        if member is None:
            raise UnknownMemberId(f"no member of group {self.group_id} has instance id {instance_id!r}")
        if member.member_id != member_id:
            raise FencedInstanceId(f"instance id {instance_id!r} belongs to member {member.member_id}")
        return member

    def step(self, now: Now, context: GroupContext) -> ConsumerStep:
        return ConsumerStep(self.state, self.soft, now, context)


def _check_current(member: ConsumerMember, epoch: int) -> None:
    if epoch == member.epoch:
        return
    message = f"member {member.member_id} is at epoch {member.epoch}, not at {epoch}"
    raise IllegalGeneration(message) if member.is_classic else StaleMemberEpoch(message)


def upgrade_and_join(
    group: ClassicGroupSnapshot,
    request: ConsumerHeartbeatRequest,
    waiter: Waiter,
    now: Now,
    context: GroupContext,
) -> tuple[ConsumerGroup, GroupDecision]:
    """The first heartbeat of the consumer protocol in a classic group: the group becomes a consumer group.

    Returns that group, and records to delete the classic one, to make this and to let the member join it. A group
    without members is deleted whatever its type, and the migration policy is not asked.
    """
    check_heartbeat(request, context.settings)
    decision = GroupDecision([GroupRecord(ClassicGroupKey(group.group_id), None)], is_refusable=True)
    if group.members:
        decision.records += upgrade(group, context.image, context.settings)
    upgraded = ConsumerGroup(group.group_id)
    for record in decision.records:
        upgraded.replay(record)
    decision.add(upgraded.loaded(now, context))
    decision.add(upgraded.heartbeat(request, waiter, now, context))
    return upgraded, decision
