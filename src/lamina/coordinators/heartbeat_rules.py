"""Which ConsumerGroupHeartbeat requests are refused, and which are answered in full.

Owns the rules that need nothing but the request and the member it speaks of. Must not know groups.
"""

from lamina.coordinators.consumer_member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    LEAVING_FOR_A_MOMENT_EPOCH,
    ConsumerMember,
)
from lamina.coordinators.group_context import GroupSettings
from lamina.coordinators.group_requests import ConsumerHeartbeatRequest
from lamina.coordinators.partitions_by_topic import is_subset
from lamina.coordinators.records.group_records import TopicIdPartitions
from lamina.errors import FencedMemberEpoch, InvalidRequest, UnsupportedAssignor

MEMBERS_MAKE_THEIR_ID_VERSION = 1


def check_heartbeat(request: ConsumerHeartbeatRequest, settings: GroupSettings) -> None:
    """Refuse a request that contradicts itself, whatever the state of its group."""
    if not request.group_id.strip():
        raise InvalidRequest("GroupId can't be empty")
    if request.instance_id is not None and not request.instance_id.strip():
        raise InvalidRequest("InstanceId can't be empty")
    if request.rack_id is not None and not request.rack_id.strip():
        raise InvalidRequest("RackId can't be empty")
    epoch = request.member_epoch
    may_lack_id = epoch == JOINING_EPOCH and request.api_version < MEMBERS_MAKE_THEIR_ID_VERSION
    if not may_lack_id and not request.member_id.strip():
        raise InvalidRequest("MemberId can't be empty")
    if epoch < LEAVING_FOR_A_MOMENT_EPOCH:
        raise InvalidRequest(f"MemberEpoch {epoch} is invalid")
    if epoch == LEAVING_FOR_A_MOMENT_EPOCH and request.instance_id is None:
        raise InvalidRequest("InstanceId must be set when a static member leaves for a moment")
    if epoch == JOINING_EPOCH:
        _check_joining(request)
    if request.assignor is not None and request.assignor not in settings.consumer_assignors:
        raise UnsupportedAssignor(
            f"ServerAssignor {request.assignor!r} is not supported; these are: {', '.join(settings.consumer_assignors)}"
        )


def _check_joining(request: ConsumerHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms < 0:
        raise InvalidRequest("RebalanceTimeoutMs must be set when joining")
    if request.owned is None or request.owned:
        raise InvalidRequest("TopicPartitions must be empty when joining")
    if request.topics is None and request.regex is None:
        raise InvalidRequest("SubscribedTopicNames or SubscribedTopicRegex must be set when joining")


def is_leaving(request: ConsumerHeartbeatRequest) -> bool:
    return request.member_epoch in (LEAVING_EPOCH, LEAVING_FOR_A_MOMENT_EPOCH)


def check_epoch(member: ConsumerMember, epoch: int, owned: TopicIdPartitions | None) -> None:
    """Fence a member whose epoch is not the one that it was told.

    A member may always join again. It may also come with its previous epoch and no partition that it does not have:
    then the answer that told it the new one was lost.
    """
    if epoch in (JOINING_EPOCH, member.epoch):
        return
    is_previous = epoch == member.current_assignment.previous_member_epoch and epoch < member.epoch
    if is_previous and owned is not None and is_subset(owned, member.current_assignment.assigned):
        return
    raise FencedMemberEpoch(
        f"member {member.member_id} is at epoch {member.epoch}, not at {epoch}; "
        "it must give up all its partitions and join again"
    )


def is_full(request: ConsumerHeartbeatRequest) -> bool:
    """Whether the member says everything, as it does when it joins and after an error; it is told everything too."""
    return request.member_epoch == JOINING_EPOCH or (
        request.rebalance_timeout_ms != -1
        and (request.topics is not None or request.regex is not None)
        and request.owned is not None
    )
