"""What requests about groups check beside the group: the topics in them.

Must not know what groups do.
"""

from typing import Any

from lamina.broker.requests.api import Handler
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.authorization.guards import Guarding, changed, check, denial, divided
from lamina.broker.requests.authorization.topics import each_topic
from lamina.broker.requests.authorized_operations import NOT_ASKED
from lamina.broker.requests.offset_outcomes import one_outcome, response_with
from lamina.broker.requests.request import Request
from lamina.broker.turns import in_turns
from lamina.errors import ErrorCode, TopicAuthorizationFailed
from lamina.security.acls import Operation, ResourceType
from lamina.security.authorizer import CLUSTER_NAME
from lamina.wire.api_keys import CONSUMER_GROUP_DESCRIBE
from lamina.wire.building import Shape, response_shape

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
_FIRST_BATCHED = 8
_NOTHING = -1

offset_commit = each_topic(Operation.READ)


def offset_delete(guarding: Guarding) -> Handler:
    api, handle, authorizer = guarding

    def guarded(request: Request, message: Any) -> Any:
        allowed, denied = divided(
            message.topics, lambda topic: authorizer.allows(request, Operation.READ, TOPIC, topic.name)
        )
        if not denied:
            return handle(request, message)
        of_denied = message.replace(topics=denied)
        outcome = one_outcome(of_denied, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        refused = response_with(api.key, request, of_denied, outcome, error_code=ErrorCode.NONE)
        # The group has to be there, whatever topics are named.
        return changed(
            handle(request, message.replace(topics=allowed)),
            lambda response: (
                response if response.error_code else response.replace(topics=(*response.topics, *refused.topics))
            ),
        )

    return guarded


def offset_fetch(guarding: Guarding) -> Handler:
    """DESCRIBE of each group and of its topics; where all topics are meant, the others are left out."""
    api, handle, authorizer = guarding

    def may_see(request: Request, topic: Any) -> bool:
        name = topic.name if hasattr(topic, "name") else authorizer.topic_name(topic.topic_id)
        return name is None or authorizer.allows(request, Operation.DESCRIBE, TOPIC, name)

    def visible(request: Request, topics: Any) -> tuple[Any, ...]:
        return tuple(topic for topic in topics if _is_visible(authorizer, request, topic))

    def of_one(request: Request, message: Any) -> Any:
        check(authorizer, request, Operation.DESCRIBE, GROUP, message.group_id)
        if message.topics is None:
            return changed(
                handle(request, message), lambda response: response.replace(topics=visible(request, response.topics))
            )
        allowed, denied = divided(message.topics, lambda topic: may_see(request, topic))
        if not denied:
            return handle(request, message)
        shape = response_shape(api.key, request.api_version).of("topics")
        refused = [_unseen(shape, topic) for topic in denied]
        return changed(
            handle(request, message.replace(topics=allowed)),
            lambda response: response.replace(topics=(*response.topics, *refused)),
        )

    async def of_several(request: Request, message: Any) -> Any:
        clocks = authorizer.clocks
        # What is decided about each is found in turns, and known below.
        async for group in in_turns(message.groups, clocks):
            async for topic in in_turns(group.topics or (), clocks):
                _is_visible(authorizer, request, topic)
        groups, refused = divided(
            message.groups, lambda group: authorizer.allows(request, Operation.DESCRIBE, GROUP, group.group_id)
        )
        shape = response_shape(api.key, request.api_version).of("groups").of("topics")
        asked, unseen = [], []
        for group in groups:
            allowed, denied = divided(group.topics or (), lambda topic: may_see(request, topic))
            asked.append(group.replace(topics=allowed) if denied else group)
            unseen.append([_unseen(shape, topic) for topic in denied])

        def answered(response: Any) -> Any:
            told = [
                group.replace(topics=visible(request, group.topics) if of.topics is None else (*group.topics, *hidden))
                if not group.error_code
                else group
                for group, of, hidden in zip(response.groups, groups, unseen, strict=True)
            ]
            return response.replace(groups=(*told, *more))

        error = denial(Operation.DESCRIBE, GROUP)
        more = api.error_response(request, message.replace(groups=refused), error).groups
        return answered(await handle(request, message.replace(groups=tuple(asked))))

    def guarded(request: Request, message: Any) -> Any:
        return (of_one if request.api_version < _FIRST_BATCHED else of_several)(request, message)

    return guarded


def _is_visible(authorizer: Authorizer, request: Request, topic: Any) -> bool:
    name = topic.name if hasattr(topic, "name") else authorizer.topic_name(topic.topic_id)
    return name is not None and authorizer.allows_filtering(request, Operation.DESCRIBE, TOPIC, name)


def _unseen(shape: Shape, topic: Any) -> Any:
    partition_shape = shape.of("partitions")
    return shape(
        name=getattr(topic, "name", None),
        topic_id=getattr(topic, "topic_id", None),
        partitions=tuple(
            partition_shape(
                partition_index=index,
                committed_offset=_NOTHING,
                committed_leader_epoch=_NOTHING,
                metadata="",
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            )
            for index in topic.partition_indexes
        ),
    )


def subscribe(guarding: Guarding) -> Handler:
    """DESCRIBE of every topic that a member of the consumer protocol names."""
    _, handle, authorizer = guarding

    def guarded(request: Request, message: Any) -> Any:
        for name in message.subscribed_topic_names or ():
            check(authorizer, request, Operation.DESCRIBE, TOPIC, name)
        return handle(request, message)

    return guarded


def describe_groups(authorizer: Authorizer, request: Request, response: Any) -> Any:
    return response.replace(groups=tuple(_with_operations(authorizer, request, group) for group in response.groups))


def describe_consumer_groups(authorizer: Authorizer, request: Request, response: Any) -> Any:
    """Of a group that has topics which the client may not describe, nothing is told."""
    shape = response_shape(CONSUMER_GROUP_DESCRIBE, request.api_version).of("groups")
    return response.replace(
        groups=tuple(
            _with_operations(authorizer, request, group)
            if all(authorizer.allows_filtering(request, Operation.DESCRIBE, TOPIC, name) for name in _topics_of(group))
            else shape(
                error_code=TopicAuthorizationFailed.code,
                error_message="the group has topics that this client may not describe",
                group_id=group.group_id,
                group_state="",
                group_epoch=0,
                assignment_epoch=0,
                assignor_name="",
                members=(),
                authorized_operations=NOT_ASKED,
            )
            for group in response.groups
        )
    )


def _topics_of(group: Any) -> set[str]:
    return {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }


def _with_operations(authorizer: Authorizer, request: Request, group: Any) -> Any:
    if getattr(group, "authorized_operations", NOT_ASKED) == NOT_ASKED:
        return group
    return group.replace(authorized_operations=authorizer.operations(request, GROUP, group.group_id))


async def list_groups(authorizer: Authorizer, request: Request, response: Any) -> Any:
    """DESCRIBE of the cluster tells all; else those that may be described."""
    if authorizer.allows_filtering(request, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return response
    return response.replace(
        groups=tuple(
            [
                group
                async for group in in_turns(response.groups, authorizer.clocks)
                if authorizer.allows_filtering(request, Operation.DESCRIBE, GROUP, group.group_id)
            ]
        )
    )
