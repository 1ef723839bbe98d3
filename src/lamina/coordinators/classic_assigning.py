"""Assigning in a classic group: the leader sends the assignments, the group stores them, each member gets its own.

Must not know what the bytes of an assignment mean.
"""

from collections.abc import Callable

from lamina.coordinators.classic_members import ClassicMember
from lamina.coordinators.classic_rebalance import rebalance
from lamina.coordinators.classic_state import ClassicState, GroupDecision, State
from lamina.coordinators.decision import Effect, Now, Waiter
from lamina.coordinators.group_requests import SyncRequest, SyncResponse
from lamina.errors import InconsistentGroupProtocol, RebalanceInProgress, UnknownServerError


def sync(group: ClassicState, request: SyncRequest, waiter: Waiter, now: Now) -> GroupDecision:
    member = group.members.require(request.member_id, request.instance_id)
    group.check_generation(request.generation)
    _check_same("type", request.protocol_type, group.protocol_type)
    _check_same("protocol", request.protocol, group.protocol)
    if group.state is State.PREPARING_REBALANCE:
        raise RebalanceInProgress(f"{group.group_id} is rebalancing")
    decision = GroupDecision()
    group.has_synced(member, decision)
    if group.state is State.STABLE:
        group.renew_session(member, now, decision)
        decision.reply(waiter, _response(group, member))
        return decision
    if member.syncs is not None:
        decision.reply(member.syncs, RebalanceInProgress("the member has asked again meanwhile"))
    member.syncs = waiter
    if member.member_id == group.members.leader:
        _assign(group, request, now, decision)
    return decision


def _check_same(what: str, named: str | None, chosen: str | None) -> None:
    if named is not None and chosen is not None and named != chosen:
        raise InconsistentGroupProtocol(f"the {what} of the group is {chosen}, not {named}")


def _assign(group: ClassicState, request: SyncRequest, now: Now, decision: GroupDecision) -> None:
    waiting = [member for member in group.members if member.syncs is not None]
    decision.if_too_large = _taken_back(group, [(one, one.syncs) for one in waiting], now, tuple(decision.effects))
    for member in group.members:
        member.assignment = request.assignments.get(member.member_id, b"")
    group.transition_to(State.STABLE, now)
    decision.records.append(group.record())
    for member in group.members:
        if member.syncs is not None:
            decision.reply(member.syncs, _response(group, member))
            member.syncs = None
            group.renew_session(member, now, decision)


def _taken_back(
    group: ClassicState, waiting: list[tuple[ClassicMember, Waiter | None]], now: Now, effects: tuple[Effect, ...]
) -> Callable[[], GroupDecision]:
    """If the log refuses an assignment, the members that wait for it get an error, and all join again."""

    def take_back() -> GroupDecision:
        decision = GroupDecision(effects=list(effects))
        error = UnknownServerError(f"the assignment of {group.group_id} is too large to be stored")
        group.transition_to(State.COMPLETING_REBALANCE, now)
        for member, waiter in waiting:
            assert waiter is not None
            decision.reply(waiter, error)
            group.renew_session(member, now, decision)
        rebalance(group, now, decision)
        return decision

    return take_back


def _response(group: ClassicState, member: ClassicMember) -> SyncResponse:
    return SyncResponse(group.protocol_type, group.protocol, member.assignment)
