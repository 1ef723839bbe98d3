"""Leaving a classic group: several members at a time, each with an answer of its own."""

from lamina.coordinators.classic_rebalance import complete_if_joined, rebalance
from lamina.coordinators.classic_state import ClassicState, GroupDecision
from lamina.coordinators.decision import Now, Waiter
from lamina.coordinators.group_requests import LeaveAnswer, LeaveRequest, LeavingMember
from lamina.errors import KafkaError, UnknownMemberId


def leave(group: ClassicState, request: LeaveRequest, waiter: Waiter, now: Now) -> GroupDecision:
    decision = GroupDecision()
    outcomes: list[tuple[LeavingMember, KafkaError | None]] = []
    count = len(group.members)
    for leaving in request.members:
        try:
            _leave(group, leaving, decision)
            outcomes.append((leaving, None))
        except KafkaError as error:
            outcomes.append((leaving, error))
    if len(group.members) < count:
        rebalance(group, now, decision)
    else:
        # Who was told an id and leaves was no member, but may have been waited for.
        complete_if_joined(group, now, decision)
    decision.reply(waiter, LeaveAnswer(tuple(outcomes)))
    return decision


def _leave(group: ClassicState, leaving: LeavingMember, decision: GroupDecision) -> None:
    members = group.members
    if leaving.member_id in members.pending:
        group.forget_pending(leaving.member_id, decision)
    elif leaving.member_id or leaving.instance_id is None:
        group.remove(members.require(leaving.member_id, leaving.instance_id), decision)
    else:
        # An administrator removes a static member by its instance alone.
        static = members.of_instance(leaving.instance_id)
        if static is None:
            raise UnknownMemberId(f"no member has the instance id {leaving.instance_id}")
        group.remove(static, decision)
