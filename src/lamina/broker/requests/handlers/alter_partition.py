"""AlterPartition (key 56), versions 2-3: a leader asks the controller for another in-sync set.

Behaviour: the changes that can be made are stored together, each of the others gets its error (R54). NOT_CONTROLLER
where this broker is not the controller, STALE_BROKER_EPOCH for a sender whose registration is not the last one.
Version notes: the broker epoch of each member is checked from v3.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from lamina.broker.metadata.member import Member
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.controller.in_sync import BrokerState, InSyncRequest, InSyncRequests
from lamina.errors import ErrorCode, KafkaError
from lamina.image.topic import Partition
from lamina.wire.api_keys import ALTER_PARTITION as API_KEY
from lamina.wire.building import Shape, response_shape

_FIRST_WITH_EPOCHS = 3


async def handle(member: Member, request: Request, message: Any) -> Any:
    outcomes = await member.alter_partitions(message.broker_id, message.broker_epoch, _requests(request, message))
    return _response(request, ErrorCode.NONE, outcomes)


def _requests(request: Request, message: Any) -> InSyncRequests:
    return {
        (topic.topic_id.bytes if topic.topic_id is not None else bytes(16), asked.partition_index): InSyncRequest(
            asked.leader_epoch, asked.partition_epoch, _members(request, asked), bool(asked.leader_recovery_state)
        )
        for topic in message.topics
        for asked in topic.partitions
    }


def _members(request: Request, asked: Any) -> tuple[BrokerState, ...]:
    if request.api_version < _FIRST_WITH_EPOCHS:
        return tuple(BrokerState(broker_id) for broker_id in asked.new_isr)
    return tuple(BrokerState(one.broker_id, one.broker_epoch) for one in asked.new_isr_with_epochs)


def _response(
    request: Request, error_code: ErrorCode, outcomes: Mapping[tuple[bytes, int], Partition | KafkaError]
) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    by_topic: dict[bytes, list[Any]] = {}
    for (topic_id, index), outcome in outcomes.items():
        by_topic.setdefault(topic_id, []).append(_partition(partition_shape, index, outcome))
    return shape(
        error_code=error_code,
        topics=tuple(
            topic_shape(topic_id=UUID(bytes=topic_id), partitions=tuple(partitions))
            for topic_id, partitions in by_topic.items()
        ),
    )


def _partition(shape: Shape, index: int, outcome: Partition | KafkaError) -> Any:
    if isinstance(outcome, KafkaError):
        return shape(
            partition_index=index,
            error_code=outcome.code,
            leader_id=-1,
            leader_epoch=-1,
            isr=(),
            leader_recovery_state=0,
            partition_epoch=-1,
        )
    return shape(
        partition_index=index,
        error_code=ErrorCode.NONE,
        leader_id=outcome.leader,
        leader_epoch=outcome.leader_epoch,
        isr=outcome.isr,
        leader_recovery_state=int(outcome.is_recovering),
        partition_epoch=outcome.partition_epoch,
    )


def error_response(request: Request, _message: Any, error: KafkaError) -> Any:
    return _response(request, error.code, {})


API = Api(API_KEY, "AlterPartition", range(2, 4), error_response, is_for_brokers=True)
