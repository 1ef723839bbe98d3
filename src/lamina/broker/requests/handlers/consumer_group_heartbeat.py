"""ConsumerGroupHeartbeat (key 68), versions 0-1.

Behaviour: the one request of the consumer protocol (KIP-848): joins, stays, tells what it owns, leaves; the group's
shard decides, and the answer comes at once.
Version notes: v1 has regular expressions, and members choose their ids.
"""

from typing import Any
from uuid import UUID, uuid4

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.requests.api import Api
from lamina.broker.requests.handlers.join_group import client_of
from lamina.broker.requests.request import Request
from lamina.coordinators.group_requests import ConsumerHeartbeatRequest, ConsumerHeartbeatResponse
from lamina.errors import ErrorCode, InvalidRequest, KafkaError
from lamina.wire.building import response_shape
from lamina.wire.encoder import milliseconds

API_KEY = 68


def handle(groups: GroupCoordinator, request: Request, message: Any) -> Any:
    heartbeat = ConsumerHeartbeatRequest(
        message.group_id,
        message.member_id,
        message.member_epoch,
        message.instance_id,
        message.rack_id,
        milliseconds(message.rebalance_timeout),
        message.subscribed_topic_names,
        getattr(message, "subscribed_topic_regex", None),
        message.server_assignor,
        _owned(message.topic_partitions),
        client_of(request),
        str(uuid4()),
        request.api_version,
    )
    shard = groups.shard_of(message.group_id)
    pending = shard.ask(lambda machine, waiter, now: machine.consumer_heartbeat(heartbeat, waiter, now))
    return pending.then(lambda response: _response(request, response))


def _owned(topics: Any) -> dict[bytes, tuple[int, ...]] | None:
    if topics is None:
        return None
    owned: dict[bytes, tuple[int, ...]] = {}
    for topic in topics:
        if topic.topic_id is None:
            raise InvalidRequest("a topic has to be named by its id")
        owned[topic.topic_id.bytes] = tuple(sorted({*owned.get(topic.topic_id.bytes, ()), *topic.partitions}))
    return owned


def _response(request: Request, response: ConsumerHeartbeatResponse) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    assignment = None
    if response.assignment is not None:
        assignment_shape = shape.of("assignment")
        topic_shape = assignment_shape.of("topic_partitions")
        assignment = assignment_shape(
            topic_partitions=tuple(
                topic_shape(topic_id=UUID(bytes=topic_id), partitions=partitions)
                for topic_id, partitions in response.assignment.items()
            )
        )
    return shape(
        error_code=ErrorCode.NONE,
        error_message=None,
        member_id=response.member_id,
        member_epoch=response.member_epoch,
        heartbeat_interval=response.heartbeat_interval_ms,
        assignment=assignment,
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return response_shape(API_KEY, request.api_version)(
        error_code=error.code,
        error_message=str(error),
        member_id=None,
        member_epoch=0,
        heartbeat_interval=0,
        assignment=None,
    )


API = Api(API_KEY, "ConsumerGroupHeartbeat", range(2), error_response)
