"""ConsumerGroupHeartbeat (key 68), versions 0-1.

Behaviour: the one request of the consumer protocol (KIP-848): joins, stays, tells what it owns, leaves; the group's
shard decides, and the answer comes at once. A regular expression stands for those topics that the client may describe
whose heartbeat has it resolved. An assignment of many topics is answered in turns of the loop.
Version notes: v1 has regular expressions, and members choose their ids.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.requests.api import Api
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.handlers.join_group import client_of
from lamina.broker.requests.request import Request
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.coordinators.group_requests import ConsumerHeartbeatRequest, ConsumerHeartbeatResponse
from lamina.coordinators.records.group_records import TopicIdPartitions
from lamina.errors import ErrorCode, InvalidRequest, KafkaError
from lamina.security.acls import Operation, ResourceType
from lamina.wire.api_keys import CONSUMER_GROUP_HEARTBEAT as API_KEY
from lamina.wire.building import response_shape
from lamina.wire.encoder import milliseconds

_TOPICS_AT_ONCE = 256
"""An assignment of more is answered in turns of the loop: each takes two microseconds."""


def handle(
    groups: GroupCoordinator, clocks: Clocks, authorizer: Authorizer | None, request: Request, message: Any
) -> Any:
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
        None if authorizer is None else partial(_may_describe, authorizer, request),
    )
    shard = groups.shard_of(message.group_id)
    pending = shard.ask(lambda machine, waiter, now: machine.consumer_heartbeat(heartbeat, waiter, now))

    def respond(response: ConsumerHeartbeatResponse) -> Any:
        if response.assignment is not None and len(response.assignment) > _TOPICS_AT_ONCE:
            return _respond_in_turns(request, clocks, response, response.assignment)
        return _response(request, response, [_topic(request, *one) for one in (response.assignment or {}).items()])

    return pending.then(respond)


def _may_describe(authorizer: Authorizer, request: Request, topic: str) -> bool:
    return authorizer.allows_filtering(request, Operation.DESCRIBE, ResourceType.TOPIC, topic)


async def _respond_in_turns(
    request: Request, clocks: Clocks, response: ConsumerHeartbeatResponse, assignment: TopicIdPartitions
) -> Any:
    topics = [_topic(request, *one) async for one in in_turns(assignment.items(), clocks)]
    return _response(request, response, topics)


def _owned(topics: Any) -> dict[bytes, tuple[int, ...]] | None:
    if topics is None:
        return None
    owned: dict[bytes, tuple[int, ...]] = {}
    for topic in topics:
        if topic.topic_id is None:
            raise InvalidRequest("a topic has to be named by its id")
        owned[topic.topic_id.bytes] = tuple(sorted({*owned.get(topic.topic_id.bytes, ()), *topic.partitions}))
    return owned


def _topic(request: Request, topic_id: bytes, partitions: tuple[int, ...]) -> Any:
    shape = response_shape(API_KEY, request.api_version).of("assignment").of("topic_partitions")
    return shape(topic_id=UUID(bytes=topic_id), partitions=partitions)


def _response(request: Request, response: ConsumerHeartbeatResponse, topics: Sequence[Any]) -> Any:
    """``topics`` are those of the assignment, if there is one to tell."""
    shape = response_shape(API_KEY, request.api_version)
    return shape(
        error_code=ErrorCode.NONE,
        error_message=None,
        member_id=response.member_id,
        member_epoch=response.member_epoch,
        heartbeat_interval=response.heartbeat_interval_ms,
        assignment=(None if response.assignment is None else shape.of("assignment")(topic_partitions=tuple(topics))),
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
