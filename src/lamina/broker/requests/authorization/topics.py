"""What requests check that name topics by names or ids, DeleteTopics above all.

That needs DELETE of the cluster, or DESCRIBE and DELETE of each topic.

A topic that is named by an id and may not be described keeps its name for itself. Must not know how topics go.
"""

from typing import Any
from uuid import UUID

from lamina.broker.requests.api import Handler
from lamina.broker.requests.authorization.guards import Guard, Guarding, changed, denial, with_divided
from lamina.broker.requests.request import Request
from lamina.broker.turns import in_turns
from lamina.errors import KafkaError
from lamina.security.acls import Operation, ResourceType
from lamina.security.authorizer import CLUSTER_NAME

_FIRST_BY_ID = 6


def delete_topics(guarding: Guarding) -> Handler:
    api, handle, authorizer = guarding

    def refused(request: Request, name: str | None, topic_id: UUID | None) -> tuple[KafkaError, str | None] | None:
        """Why this topic stays, and the name to tell; what is not there, or not named well, is the handler's."""
        of_id = authorizer.topic_name(topic_id) if name is None else None
        topic = of_id if name is None else name
        if topic is None:
            return None
        if not authorizer.allows(request, Operation.DESCRIBE, ResourceType.TOPIC, topic):
            return denial(Operation.DESCRIBE, ResourceType.TOPIC), name
        if not authorizer.allows(request, Operation.DELETE, ResourceType.TOPIC, topic):
            return denial(Operation.DELETE, ResourceType.TOPIC), topic
        return None

    async def guarded(request: Request, message: Any) -> Any:
        if authorizer.allows_filtering(request, Operation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME):
            return await handle(request, message)
        field = "topics" if request.api_version >= _FIRST_BY_ID else "topic_names"
        allowed, answers = [], []
        async for one in in_turns(getattr(message, field), authorizer.clocks):
            by_name = isinstance(one, str)
            refusal = refused(request, one if by_name else one.name, None if by_name else one.topic_id)
            if refusal is None:
                allowed.append(one)
            else:
                error, name = refusal
                (answer,) = api.error_response(request, message.replace(**{field: (one,)}), error).responses
                answers.append(answer.replace(name=name))
        if not answers:
            return await handle(request, message)
        response = await handle(request, message.replace(**{field: tuple(allowed)}))
        return response.replace(responses=(*response.responses, *answers))

    return guarded


def each_topic(operation: Operation) -> Guard:
    """Each topic of a request that names it by its name or by its id; one whose id is unknown is the handler's."""

    def guard(guarding: Guarding) -> Handler:
        api, handle, authorizer = guarding

        def is_allowed(request: Request, topic: Any) -> bool:
            name = topic.name if hasattr(topic, "name") else authorizer.topic_name(topic.topic_id)
            return name is None or authorizer.allows(request, operation, ResourceType.TOPIC, name)

        def answer(request: Request, message: Any, allowed: tuple[Any, ...], denied: tuple[Any, ...]) -> Any:
            if not denied:
                return handle(request, message)
            refused = api.error_response(request, message.replace(topics=denied), denial(operation, ResourceType.TOPIC))
            if not allowed:
                return refused
            return changed(
                handle(request, message.replace(topics=allowed)),
                lambda response: response.replace(topics=(*response.topics, *refused.topics)),
            )

        def guarded(request: Request, message: Any) -> Any:
            return with_divided(
                authorizer.clocks,
                message.topics,
                lambda topic: is_allowed(request, topic),
                lambda allowed, denied: answer(request, message, allowed, denied),
            )

        return guarded

    return guard
