"""The first heartbeat of the consumer protocol in a classic group: the group becomes a consumer group.

Owns how the two decisions, to convert and to let the member join, become one. Must not know the classic machine: it
answers those that wait in it, with REBALANCE_IN_PROGRESS, when it is given up.
"""

from lamina.coordinators.consumer import ConsumerGroup, GroupDecision
from lamina.coordinators.consumer_context import ConsumerContext
from lamina.coordinators.conversion import ClassicGroupSnapshot, upgrade
from lamina.coordinators.decision import Now, Waiter
from lamina.coordinators.group_requests import ConsumerHeartbeatRequest
from lamina.coordinators.heartbeat_rules import check_heartbeat
from lamina.coordinators.records.group_records import ClassicGroupKey, GroupRecord


def heartbeat_to_classic(
    group: ClassicGroupSnapshot,
    request: ConsumerHeartbeatRequest,
    waiter: Waiter,
    now: Now,
    context: ConsumerContext,
) -> tuple[ConsumerGroup, GroupDecision]:
    """The consumer group, and records to delete the classic one, to make this and to let the member join it.

    A group without members is deleted whatever its type, and the migration policy is not asked.
    """
    check_heartbeat(request, context.settings)
    decision = GroupDecision([GroupRecord(ClassicGroupKey(group.group_id), None)], is_refusable=True)
    if group.members:
        decision.records += upgrade(group, context.image, context.settings)
    converted = ConsumerGroup(group.group_id)
    for record in decision.records:
        converted.replay(record)
    decision.add(converted.loaded(now, context))
    decision.add(converted.heartbeat(request, waiter, now, context))
    return converted, decision
