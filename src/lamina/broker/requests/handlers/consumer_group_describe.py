"""ConsumerGroupDescribe (key 69), versions 0-1.

Behaviour: state, epochs and members of consumer groups, with their current and their target assignment. A group that is
not there or is classic is GROUP_ID_NOT_FOUND, which sends clients to DescribeGroups. In turns of the loop: many groups
may be asked for, and a group may have many members, a member many topics.
Version notes: v1 says which protocol a member speaks.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from lamina.broker.coordination.group_coordinator import GroupCoordinator
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.requests.api import Api
from lamina.broker.requests.authorized_operations import ALL_ON_GROUP, NOT_ASKED
from lamina.broker.requests.request import Request
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.coordinators.group_requests import ConsumerDescription, DescribedConsumer
from lamina.coordinators.records.group_records import TopicIdPartitions
from lamina.errors import ErrorCode, KafkaError
from lamina.wire.api_keys import CONSUMER_GROUP_DESCRIBE as API_KEY
from lamina.wire.building import Shape, response_shape


async def handle(metadata: Metadata, groups: GroupCoordinator, clocks: Clocks, request: Request, message: Any) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    group_shape = shape.of("groups")
    operations = ALL_ON_GROUP if message.include_authorized_operations else NOT_ASKED
    turns = Turns(clocks)
    described = []
    for group_id in message.group_ids:
        try:
            found = await groups.describe_consumers(group_id)
            described.append(await _group(group_shape, found, metadata.image.topic_names, operations, turns))
        except KafkaError as error:
            described.append(_failed(group_shape, group_id, error))
        await turns.step()
    return shape(groups=tuple(described))


async def _group(
    shape: Shape, described: ConsumerDescription, names: Mapping[bytes, str], operations: int, turns: Turns
) -> Any:
    member_shape = shape.of("members")
    members = [await _member(member_shape, member, names, turns) for member in described.members]
    return shape(
        error_code=ErrorCode.NONE,
        error_message=None,
        group_id=described.group_id,
        group_state=described.state,
        group_epoch=described.epoch,
        assignment_epoch=described.target_epoch,
        assignor_name=described.assignor,
        members=tuple(members),
        authorized_operations=operations,
    )


async def _member(shape: Shape, member: DescribedConsumer, names: Mapping[bytes, str], turns: Turns) -> Any:
    assignment = await _assignment(shape.of("assignment"), member.assigned, names, turns)
    target = await _assignment(shape.of("target_assignment"), member.target, names, turns)
    await turns.step()
    return shape(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topics,
        subscribed_topic_regex=member.regex,
        assignment=assignment,
        target_assignment=target,
        member_type=member.type,
    )


async def _assignment(shape: Shape, partitions: TopicIdPartitions, names: Mapping[bytes, str], turns: Turns) -> Any:
    topic_shape = shape.of("topic_partitions")
    topics = []
    for topic_id, indexes in partitions.items():
        if topic_id in names:
            topics.append(topic_shape(topic_id=UUID(bytes=topic_id), topic_name=names[topic_id], partitions=indexes))
        await turns.step()
    return shape(topic_partitions=tuple(topics))


def _failed(shape: Shape, group_id: str, error: KafkaError) -> Any:
    return shape(
        error_code=error.code,
        error_message=str(error),
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=(),
        authorized_operations=NOT_ASKED,
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    return shape(
        groups=tuple(_failed(shape.of("groups"), group_id, error) for group_id in message.group_ids),
    )


API = Api(API_KEY, "ConsumerGroupDescribe", range(2), error_response)
