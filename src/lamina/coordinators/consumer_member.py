"""A member of a consumer group: its subscription and its current assignment.

Immutable; a change makes another. Must not know the group, nor other members.
"""

from collections.abc import Iterable
from typing import NamedTuple

from lamina.coordinators.group_requests import ConsumerHeartbeatRequest
from lamina.coordinators.partitions_by_topic import NO_PARTITIONS
from lamina.coordinators.reconciliation import MemberState
from lamina.coordinators.records.group_records import ConsumerMemberValue, CurrentAssignmentValue

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
LEAVING_FOR_A_MOMENT_EPOCH = -2

NO_SUBSCRIPTION = ConsumerMemberValue(
    instance_id=None,
    rack_id=None,
    client_id="",
    client_host="",
    topics=(),
    regex=None,
    rebalance_timeout_ms=-1,
    assignor=None,
)
NO_ASSIGNMENT = CurrentAssignmentValue(
    member_epoch=JOINING_EPOCH,
    previous_member_epoch=-1,
    state=MemberState.STABLE.value,
    assigned=NO_PARTITIONS,
    pending_revocation=NO_PARTITIONS,
)
ASSIGNMENT_REMOVED = NO_ASSIGNMENT._replace(member_epoch=LEAVING_EPOCH, previous_member_epoch=LEAVING_EPOCH)


class ConsumerMember(NamedTuple):
    member_id: str
    subscription: ConsumerMemberValue = NO_SUBSCRIPTION
    current_assignment: CurrentAssignmentValue = NO_ASSIGNMENT

    @property
    def epoch(self) -> int:
        return self.current_assignment.member_epoch

    @property
    def instance_id(self) -> str | None:
        return self.subscription.instance_id

    @property
    def regex(self) -> str | None:
        """The expression it subscribes to; an empty one says that it does no longer."""
        return self.subscription.regex or None

    @property
    def is_classic(self) -> bool:
        """Whether it speaks the classic protocol."""
        return self.subscription.classic is not None

    @property
    def is_revoking(self) -> bool:
        return self.current_assignment.state == MemberState.UNREVOKED_PARTITIONS

    def after(self, request: ConsumerHeartbeatRequest) -> "ConsumerMember":
        """What a heartbeat leaves out stays as it was. A member that sends one speaks the consumer protocol."""
        subscription = self.subscription
        return self._replace(
            subscription=ConsumerMemberValue(
                instance_id=subscription.instance_id if request.instance_id is None else request.instance_id,
                rack_id=subscription.rack_id if request.rack_id is None else request.rack_id,
                client_id=request.client.client_id,
                client_host=request.client.host,
                topics=subscription.topics if request.topics is None else topic_set(request.topics),
                regex=subscription.regex if request.regex is None else request.regex,
                rebalance_timeout_ms=(
                    subscription.rebalance_timeout_ms
                    if request.rebalance_timeout_ms == -1
                    else request.rebalance_timeout_ms
                ),
                assignor=subscription.assignor if request.assignor is None else request.assignor,
                classic=None,
            )
        )

    def replaced_by(self, member_id: str) -> "ConsumerMember":
        """The member that takes a static member's place: another id, the same assignment, and yet to join."""
        return self._replace(
            member_id=member_id,
            current_assignment=self.current_assignment._replace(
                member_epoch=JOINING_EPOCH, previous_member_epoch=JOINING_EPOCH
            ),
        )


def topic_set(names: Iterable[str]) -> tuple[str, ...]:
    """Topic names as they are stored: each once, in order."""
    return tuple(sorted(set(names)))
