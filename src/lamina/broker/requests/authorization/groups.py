"""What requests about groups check beside the group: the topics in them.

Must not know what groups do.
"""

from typing import Any

from lamina.broker.requests.api import Handler
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.authorization.guards import (
    AT_ONCE,
    Guarding,
    awaited,
    changed,
    check,
    denial,
    with_divided,
    with_refusal,
)
from lamina.broker.requests.authorization.topics import each_topic
from lamina.broker.requests.authorized_operations import NOT_ASKED
from lamina.broker.requests.offset_outcomes import one_outcome, response_with
from lamina.broker.requests.request import Request
from lamina.broker.turns import Turns, in_turns
from lamina.errors import ErrorCode, TopicAuthorizationFailed
from lamina.security.access_index import CLUSTER_NAME
from lamina.security.acls import Operation, ResourceType
from lamina.wire.api_keys import CONSUMER_GROUP_DESCRIBE
from lamina.wire.building import Shape, response_shape

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
_FIRST_BATCHED = 8
_NOTHING = -1

offset_commit = each_topic(Operation.READ)


def offset_delete(guarding: Guarding) -> Handler:
    api, handle, authorizer = guarding.api, guarding.handle, guarding.authorizer

    def answer(request: Request, message: Any, allowed: tuple[Any, ...], denied: tuple[Any, ...]) -> Any:
        if not denied:
            return handle(request, message)
        of_denied = message.replace(topics=denied)

        def refused() -> Any:
            outcome = one_outcome(of_denied, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            return response_with(api.key, request, of_denied, outcome, error_code=ErrorCode.NONE)

        # The group has to be there, whatever topics are named.
        return changed(
            handle(request, message.replace(topics=allowed)),
            lambda response: (
                response
                if response.error_code
                else with_refusal(response, guarding.apart(of_denied, refused), "topics")
            ),
        )

    def guarded(request: Request, message: Any) -> Any:
        return with_divided(
            authorizer.clocks,
            message.topics,
            lambda topic: authorizer.allows(request, Operation.READ, TOPIC, topic.name),
            lambda allowed, denied: answer(request, message, allowed, denied),
        )

    return guarded


def offset_fetch(guarding: Guarding) -> Handler:
    """DESCRIBE of each group and of its topics; where all topics are meant, the others are left out."""
    api, handle, authorizer = guarding.api, guarding.handle, guarding.authorizer

    def may_see(request: Request, topic: Any) -> bool:
        name = topic.name if hasattr(topic, "name") else authorizer.topic_name(topic.topic_id)
        return name is None or authorizer.allows(request, Operation.DESCRIBE, TOPIC, name)

    async def visible(request: Request, of: Any, turns: Turns) -> Any:
        """The response, or one of its groups, without the topics that may not be described."""
        topics = []
        for topic in of.topics:
            if _is_visible(authorizer, request, topic):
                topics.append(topic)
            await turns.step()
        return of.replace(topics=tuple(topics))

    def of_one(request: Request, message: Any) -> Any:
        check(authorizer, request, Operation.DESCRIBE, GROUP, message.group_id)
        if message.topics is None:
            return changed(
                handle(request, message), lambda response: visible(request, response, Turns(authorizer.clocks))
            )

        def answer(allowed: tuple[Any, ...], denied: tuple[Any, ...]) -> Any:
            if not denied:
                return handle(request, message)
            of_denied, shape = message.replace(topics=denied), response_shape(api.key, request.api_version).of("topics")
            response = handle(request, message.replace(topics=allowed))
            hidden = guarding.apart(of_denied, lambda: tuple(_unseen(shape, topic) for topic in denied))
            return changed(
                response,
                lambda told: changed(hidden, lambda topics: told.replace(topics=(*told.topics, *topics))),
            )

        return with_divided(authorizer.clocks, message.topics, lambda topic: may_see(request, topic), answer)

    async def of_several(request: Request, message: Any) -> Any:
        turns = Turns(authorizer.clocks)
        groups, asked, unseen, refused = [], [], [], []
        for group in message.groups:
            if not authorizer.allows(request, Operation.DESCRIBE, GROUP, group.group_id):
                refused.append(group)
                await turns.step()
                continue
            allowed: list[Any] = []
            denied: list[Any] = []
            for topic in group.topics or ():
                (allowed if may_see(request, topic) else denied).append(topic)
                await turns.step()
            groups.append(group)
            asked.append(group.replace(topics=tuple(allowed)) if denied else group)
            unseen.append(denied)
        shape = response_shape(api.key, request.api_version).of("groups").of("topics")
        hidden = await awaited(
            guarding.apart(message, lambda: [[_unseen(shape, topic) for topic in topics] for topics in unseen])
        )
        error = denial(Operation.DESCRIBE, GROUP)
        more = (await awaited(guarding.refusal(request, message.replace(groups=tuple(refused)), error))).groups
        response = await handle(request, message.replace(groups=tuple(asked)))
        told = []
        for group, of, topics in zip(response.groups, groups, hidden, strict=True):
            if group.error_code:
                told.append(group)
            elif of.topics is None:
                told.append(await visible(request, group, turns))
            else:
                told.append(group.replace(topics=(*group.topics, *topics)))
            await turns.step()
        return response.replace(groups=(*told, *more))

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
    handle, authorizer = guarding.handle, guarding.authorizer

    async def guarded_in_turns(request: Request, message: Any) -> Any:
        async for name in in_turns(message.subscribed_topic_names, authorizer.clocks):
            check(authorizer, request, Operation.DESCRIBE, TOPIC, name)
        return await awaited(handle(request, message))

    def guarded(request: Request, message: Any) -> Any:
        names = message.subscribed_topic_names or ()
        if len(names) > AT_ONCE:
            return guarded_in_turns(request, message)
        for name in names:
            check(authorizer, request, Operation.DESCRIBE, TOPIC, name)
        return handle(request, message)

    return guarded


async def describe_groups(authorizer: Authorizer, request: Request, response: Any) -> Any:
    every = in_turns(response.groups, authorizer.clocks)
    return response.replace(groups=tuple([_with_operations(authorizer, request, group) async for group in every]))


async def describe_consumer_groups(authorizer: Authorizer, request: Request, response: Any) -> Any:
    """Of a group that has topics which the client may not describe, nothing is told."""
    turns = Turns(authorizer.clocks)
    shape = response_shape(CONSUMER_GROUP_DESCRIBE, request.api_version).of("groups")
    groups = []
    for group in response.groups:
        if await _are_visible(authorizer, request, group, turns):
            groups.append(_with_operations(authorizer, request, group))
        else:
            groups.append(_hidden(shape, group))
        await turns.step()
    return response.replace(groups=tuple(groups))


async def _are_visible(authorizer: Authorizer, request: Request, group: Any, turns: Turns) -> bool:
    """The topics of a group's members."""
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            for topic in assignment.topic_partitions:
                if not authorizer.allows_filtering(request, Operation.DESCRIBE, TOPIC, topic.topic_name):
                    return False
                await turns.step()
    return True


def _hidden(shape: Shape, group: Any) -> Any:
    return shape(
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
