"""Members of the classic protocol in a consumer group (KIP-848, migration): their requests, put to its machine.

A member's generation is its epoch. It takes part in the reconciliation by joining: REBALANCE_IN_PROGRESS tells it to,
the partitions that it then owns are what a heartbeat of the other protocol would have said, and it never waits for
others. Must not know the classic machine.
"""

from lamina.coordinators.consumer import ConsumerGroup, GroupDecision
from lamina.coordinators.consumer_member import ConsumerMember, topic_set
from lamina.coordinators.consumer_step import ConsumerStep
from lamina.coordinators.decision import Now, Waiter
from lamina.coordinators.group_context import GroupContext
from lamina.coordinators.group_requests import (
    HeartbeatRequest,
    JoinRequest,
    JoinResponse,
    LeaveRequest,
    LeaveResponse,
    LeavingMember,
    SyncRequest,
    SyncResponse,
)
from lamina.coordinators.partitions_by_topic import by_id, by_name, difference, each
from lamina.coordinators.reconciliation import MemberState
from lamina.coordinators.records.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    Subscription,
    read_subscription,
    write_assignment,
)
from lamina.coordinators.records.group_records import ClassicMemberMetadata, ConsumerMemberValue
from lamina.errors import (
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidSessionTimeout,
    KafkaError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)


def join(group: ConsumerGroup, request: JoinRequest, waiter: Waiter, now: Now, context: GroupContext) -> GroupDecision:
    settings = context.settings
    if not settings.min_session_timeout_ms <= request.session_timeout_ms <= settings.max_session_timeout_ms:
        raise InvalidSessionTimeout(f"a session timeout of {request.session_timeout_ms} ms is not allowed")
    member_id = request.member_id or request.new_member_id
    group.check_size(member_id, request.instance_id, context)
    _check_protocols(group, request)
    step = group.step(now, context)
    if not request.member_id and request.instance_id is None and request.requires_known_member_id:
        required = MemberIdRequired("the member must join again with the id that it is given")
        step.decision.reply(waiter, JoinResponse(member_id, error=required))
        return step.decision
    subscription = _subscription(request, context)
    incumbent = group.state.static_member(request.instance_id)
    member = _joiner(group, request, member_id, incumbent, step)
    updated = _after(member, request, subscription)
    updated = step.advance(member, updated, by_id(subscription.owned, context.image))
    step.await_no_join(member_id)
    if incumbent is None or not step.downgrade_by_replacing(incumbent, updated):
        step.set_timer("session", member_id, request.session_timeout_ms)
        step.set_timer("sync", member_id, request.rebalance_timeout_ms)
    step.decision.reply(waiter, JoinResponse(member_id, updated.epoch, CONSUMER_PROTOCOL_TYPE, request.protocols[0][0]))
    return step.decision


def sync(group: ConsumerGroup, request: SyncRequest, waiter: Waiter, now: Now, context: GroupContext) -> GroupDecision:
    member, classic = _classic_member(group, request.member_id, request.instance_id, request.generation)
    name, metadata = classic.protocols[0]
    step = group.step(now, context)
    if group.state.epoch > member.epoch and not member.is_revoking:
        _call_to_join(group, member, waiter, step)
        return step.decision
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE):
        raise InconsistentGroupProtocol(f"the group's protocol type is not {request.protocol_type!r}")
    if request.protocol not in (None, name):
        raise InconsistentGroupProtocol(f"the member was told protocol {name!r}, not {request.protocol!r}")
    step.cancel_timer("sync", member.member_id)
    step.set_timer("session", member.member_id, classic.session_timeout_ms)
    version = read_subscription(metadata).version
    assignment = write_assignment(by_name(member.current_assignment.assigned, context.image), version)
    step.decision.reply(waiter, SyncResponse(request.protocol_type, request.protocol, assignment))
    return step.decision


def heartbeat(
    group: ConsumerGroup, request: HeartbeatRequest, waiter: Waiter, now: Now, context: GroupContext
) -> GroupDecision:
    member, classic = _classic_member(group, request.member_id, request.instance_id, request.generation)
    step = group.step(now, context)
    step.set_timer("session", member.member_id, classic.session_timeout_ms)
    if member.epoch < step.follow_metadata() or member.is_revoking or _can_get_more(group, member):
        _call_to_join(group, member, waiter, step)
    else:
        step.decision.reply(waiter, None)
    return step.decision


def leave(
    group: ConsumerGroup, request: LeaveRequest, waiter: Waiter, now: Now, context: GroupContext
) -> GroupDecision:
    """Anybody's members, whatever protocol they speak: an administrator may remove them."""
    step = group.step(now, context)
    leaving: dict[str, ConsumerMember] = {}
    responses: list[tuple[LeavingMember, KafkaError | None]] = []
    for identity in request.members:
        try:
            member = _leaver(group, identity)
        except KafkaError as error:
            responses.append((identity, error.without_frames()))
        else:
            leaving[member.member_id] = member
            responses.append((identity._replace(member_id=member.member_id), None))
    if leaving:
        step.remove(leaving.values())
    step.decision.reply(waiter, LeaveResponse(tuple(responses)))
    return step.decision


def _check_protocols(group: ConsumerGroup, request: JoinRequest) -> None:
    """All members of the classic protocol must know one protocol; one that joins again counts no more as it was."""
    common = {name for name, _ in request.protocols}
    for member in group.state.members.values():
        if member.subscription.classic is not None and member.member_id != request.member_id:
            common &= {name for name, _ in member.subscription.classic.protocols}
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not common:
        raise InconsistentGroupProtocol(f"group {group.group_id} does not support the member's protocols")


def _subscription(request: JoinRequest, context: GroupContext) -> Subscription:
    try:
        return read_subscription(request.protocols[0][1])
    except KafkaError as error:
        raise InconsistentGroupProtocol(f"the member's subscription cannot be read: {error}") from error


def _joiner(
    group: ConsumerGroup, request: JoinRequest, member_id: str, incumbent: ConsumerMember | None, step: ConsumerStep
) -> ConsumerMember:
    if request.instance_id is None:
        return group.state.members.get(member_id) or ConsumerMember(member_id)
    if request.member_id:
        return group.known(member_id, request.instance_id)
    return ConsumerMember(member_id) if incumbent is None else step.take_over(incumbent, member_id)


def _after(member: ConsumerMember, request: JoinRequest, subscription: Subscription) -> ConsumerMember:
    before = member.subscription
    return member._replace(
        subscription=ConsumerMemberValue(
            instance_id=before.instance_id if request.instance_id is None else request.instance_id,
            rack_id=before.rack_id if subscription.rack_id is None else subscription.rack_id,
            client_id=request.client.client_id,
            client_host=request.client.host,
            topics=topic_set(subscription.topics),
            regex=None,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            assignor=before.assignor,
            classic=ClassicMemberMetadata(request.session_timeout_ms, request.protocols),
        )
    )


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerMember, ClassicMemberMetadata]:
    member = group.known(member_id, instance_id)
    if member.subscription.classic is None:
        raise UnknownMemberId(f"member {member_id} does not speak the classic protocol")
    if member.epoch != generation:
        raise IllegalGeneration(f"member {member_id} is at epoch {member.epoch}, not at generation {generation}")
    return member, member.subscription.classic


def _call_to_join(group: ConsumerGroup, member: ConsumerMember, waiter: Waiter, step: ConsumerStep) -> None:
    """The member has its rebalance timeout to come, from the first time that it is called."""
    step.await_join(member.member_id, member.subscription.rebalance_timeout_ms)
    step.decision.reply(waiter, RebalanceInProgress(f"group {group.group_id} rebalances; the member must join again"))


def _can_get_more(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether everything that the member waited for is free now."""
    if member.current_assignment.state != MemberState.UNRELEASED_PARTITIONS:
        return False
    missing = difference(group.state.target_of(member.member_id), member.current_assignment.assigned)
    return not any(group.state.is_held(topic_id, partition) for topic_id, partition in each(missing))


def _leaver(group: ConsumerGroup, identity: LeavingMember) -> ConsumerMember:
    """A static member may be removed by its instance id alone."""
    incumbent = group.state.static_member(identity.instance_id)
    if identity.instance_id is not None and incumbent is not None and not identity.member_id:
        return incumbent
    return group.known(identity.member_id, identity.instance_id)
