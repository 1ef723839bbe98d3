"""Joining a classic group: who may, under which id, and whether the generation can stand.

Owns the rules for new members in two steps, for members that join again, and for static members that come back. Must
not know how the others are waited for.
"""

from collections.abc import Callable
from dataclasses import replace

from lamina.coordinators.classic_members import ClassicMember
from lamina.coordinators.classic_rebalance import complete_if_joined, rebalance
from lamina.coordinators.classic_state import ClassicState, GroupDecision, State
from lamina.coordinators.decision import Now, Waiter
from lamina.coordinators.group_requests import JoinRequest, JoinResponse
from lamina.errors import (
    FencedInstanceId,
    GroupMaxSizeReached,
    InconsistentGroupProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownServerError,
)

NEW_MEMBER_TIMEOUT_MS = 5 * 60 * 1000
"""How long the group waits for a member that joins for the first time and sends nothing more."""


def join(group: ClassicState, request: JoinRequest, waiter: Waiter, now: Now) -> GroupDecision:
    decision = GroupDecision()
    members = group.members
    known = members.get(request.member_id)
    if not _accepts(group, known):
        _turn_away(group, request, known, waiter, now, decision)
        return decision
    _check_protocols(group, request)
    if not request.member_id:
        _join_new(group, members.of_instance(request.instance_id), request, waiter, now, decision)
    elif request.member_id in members.pending and request.instance_id is None:
        group.forget_pending(request.member_id, decision)
        _add(group, request, request.member_id, waiter, now, decision)
    else:
        member = members.require(request.member_id, request.instance_id)
        _rejoin(group, member, request, waiter, now, decision)
    return decision


# Who may


def _accepts(group: ClassicState, known: ClassicMember | None) -> bool:
    """As in Kafka, a static member that comes back without its id counts as new, although its place is kept."""
    members, limit = group.members, group.settings.max_size
    if len(members) < limit:
        return True
    if group.state is State.PREPARING_REBALANCE:
        # Members that come first take the places of those that have not come back yet.
        return (known is not None and known.joins is not None) or members.joining < limit
    return known is not None


def _turn_away(
    group: ClassicState,
    request: JoinRequest,
    known: ClassicMember | None,
    waiter: Waiter,
    now: Now,
    decision: GroupDecision,
) -> None:
    """The group is full; a member of the last generation loses its place, and is not waited for."""
    group.forget_pending(request.member_id, decision)
    if known is not None:
        group.remove(known, decision)
    limit = group.settings.max_size
    decision.reply(waiter, GroupMaxSizeReached(f"{group.group_id} has {limit} members, as many as it may have"))
    complete_if_joined(group, now, decision)


def _check_protocols(group: ClassicState, request: JoinRequest) -> None:
    names = {name for name, _ in request.protocols}
    if not request.protocol_type or not names:
        raise InconsistentGroupProtocol("a member has to name a protocol type and a protocol")
    if not group.members:
        return
    if request.protocol_type != group.protocol_type:
        raise InconsistentGroupProtocol(f"{group.group_id} is a group of type {group.protocol_type}")
    if not group.members.all_support_one_of(names):
        raise InconsistentGroupProtocol(f"{group.group_id} has members that support none of {sorted(names)}")


# New members


def _join_new(
    group: ClassicState,
    static: ClassicMember | None,
    request: JoinRequest,
    waiter: Waiter,
    now: Now,
    decision: GroupDecision,
) -> None:
    if static is not None:
        _replace(group, static, request, waiter, now, decision)
    elif request.instance_id is None and request.requires_known_member_id:
        group.members.pending.add(request.new_member_id)
        at_ms = now.monotonic_ms + request.session_timeout_ms
        decision.set_timer(group.timer("pending", request.new_member_id), at_ms)
        error = MemberIdRequired("join again with the member id that comes with this answer")
        decision.reply(waiter, JoinResponse(request.new_member_id, error=error))
    else:
        _add(group, request, request.new_member_id, waiter, now, decision)


def _add(
    group: ClassicState, request: JoinRequest, member_id: str, waiter: Waiter, now: Now, decision: GroupDecision
) -> None:
    if not group.members:
        group.protocol_type = request.protocol_type
    group.members.add(
        ClassicMember(
            member_id,
            request.instance_id,
            request.client,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocols,
            joins=waiter,
            is_new=True,
        )
    )
    if group.initial is not None:
        group.initial.has_grown = True
    decision.set_timer(group.timer("session", member_id), now.monotonic_ms + NEW_MEMBER_TIMEOUT_MS)
    rebalance(group, now, decision)


# Members that the group knows


def _rejoin(
    group: ClassicState,
    member: ClassicMember,
    request: JoinRequest,
    waiter: Waiter,
    now: Now,
    decision: GroupDecision,
) -> None:
    is_leader = member.member_id == group.members.leader
    is_same = member.protocols == request.protocols
    if is_same and (group.state is State.COMPLETING_REBALANCE or (group.state is State.STABLE and not is_leader)):
        # It only missed the answer; the generation stands.
        group.renew_session(member, now, decision)
        decision.reply(waiter, group.join_response(member))
        return
    member.update(request)
    if member.joins is not None:
        decision.reply(member.joins, RebalanceInProgress("the member has joined again meanwhile"))
    member.joins = waiter
    rebalance(group, now, decision)


def _replace(
    group: ClassicState,
    member: ClassicMember,
    request: JoinRequest,
    waiter: Waiter,
    now: Now,
    decision: GroupDecision,
) -> None:
    """A static member came back: it takes its old place, without a rebalance where the generation can stand."""
    old_leader = group.members.leader
    undo = _undo_replacing(group, member, waiter)
    fenced = FencedInstanceId(f"another member has taken over the instance id {member.instance_id}")
    group.refuse(member, fenced, decision)
    group.has_synced(member, decision)
    decision.cancel_timer(group.timer("session", member.member_id))
    group.members.rename(member, request.new_member_id)
    member.update(request)
    member.is_new = False
    group.renew_session(member, now, decision)
    if group.state is not State.STABLE or group.members.vote() != group.protocol:
        member.joins = waiter
        rebalance(group, now, decision)
        return
    group.update_subscribed_topics()
    decision.if_too_large = undo
    decision.records.append(group.record())
    response = group.join_response(member)
    if request.may_skip_assignment:
        response = response._replace(skip_assignment=member.member_id == group.members.leader)
    else:
        # A client that cannot be told to skip must not believe that it leads: it would assign again.
        response = response._replace(leader=old_leader or "", members=())
    decision.reply(waiter, response)


def _undo_replacing(group: ClassicState, member: ClassicMember, waiter: Waiter) -> Callable[[], GroupDecision]:
    """If the log does not take a generation with the new id, the old member stays."""
    old, was_syncing = replace(member), member.member_id in group.syncing

    def undo() -> GroupDecision:
        group.members.rename(member, old.member_id)
        member.client, member.protocols = old.client, old.protocols
        member.rebalance_timeout_ms, member.session_timeout_ms = old.rebalance_timeout_ms, old.session_timeout_ms
        if was_syncing:
            group.syncing.add(member.member_id)
        group.update_subscribed_topics()
        decision = GroupDecision()
        decision.reply(waiter, UnknownServerError(f"{group.group_id} is too large to be stored"))
        return decision

    return undo
