"""What requests check that name topics by names or ids, DeleteTopics above all.

That needs DELETE of the cluster, or DESCRIBE and DELETE of each topic. Names are decided on here, before they are
looked for. Which topic has an id is known for certain inside the change alone, so the handler asks :func:`why_kept`
there; a topic that may not be described keeps its name for itself. Must not know how topics go.
"""

from typing import Any, NamedTuple

from lamina.broker.requests.api import Handler
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.authorization.guards import Guard, Guarding, denial, with_divided, with_refusal
from lamina.broker.requests.request import Request
from lamina.broker.turns import in_turns
from lamina.errors import KafkaError
from lamina.security.access_index import CLUSTER_NAME
from lamina.security.acls import Operation, ResourceType

_FIRST_BY_ID = 6


class Kept(NamedTuple):
    """A topic that a client may not delete."""

    error: KafkaError
    name: str | None
    """What a client is told that names it by its id."""


def why_kept(authorizer: Authorizer, request: Request, topic: str) -> Kept | None:
    if _may_delete_all(authorizer, request):
        return None
    for operation, name in ((Operation.DESCRIBE, None), (Operation.DELETE, topic)):
        if not authorizer.allows(request, operation, ResourceType.TOPIC, topic):
            return Kept(denial(operation, ResourceType.TOPIC), name)
    return None


def _may_delete_all(authorizer: Authorizer, request: Request) -> bool:
    return authorizer.allows_filtering(request, Operation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME)


def delete_topics(guarding: Guarding) -> Handler:
    """Those that are named by their ids are the handler's."""
    api, handle, authorizer = guarding.api, guarding.handle, guarding.authorizer

    async def guarded(request: Request, message: Any) -> Any:
        if _may_delete_all(authorizer, request):
            return await handle(request, message)
        field = "topics" if request.api_version >= _FIRST_BY_ID else "topic_names"
        allowed, answers = [], []
        async for one in in_turns(getattr(message, field), authorizer.clocks):
            name = one if isinstance(one, str) else one.name
            kept = None if name is None else why_kept(authorizer, request, name)
            if kept is None:
                allowed.append(one)
            else:
                answers += api.error_response(request, message.replace(**{field: (one,)}), kept.error).responses
        if not answers:
            return await handle(request, message)
        response = await handle(request, message.replace(**{field: tuple(allowed)}))
        return response.replace(responses=(*response.responses, *answers))

    return guarded


def each_topic(operation: Operation) -> Guard:
    """Each topic of a request that names it by its name or by its id; one whose id is unknown is the handler's."""

    def guard(guarding: Guarding) -> Handler:
        handle, authorizer = guarding.handle, guarding.authorizer

        def is_allowed(request: Request, topic: Any) -> bool:
            name = topic.name if hasattr(topic, "name") else authorizer.topic_name(topic.topic_id)
            return name is None or authorizer.allows(request, operation, ResourceType.TOPIC, name)

        def answer(request: Request, message: Any, allowed: tuple[Any, ...], denied: tuple[Any, ...]) -> Any:
            if not denied:
                return handle(request, message)
            error = denial(operation, ResourceType.TOPIC)
            refusal = guarding.refusal(request, message.replace(topics=denied), error)
            if not allowed:
                return refusal
            return with_refusal(handle(request, message.replace(topics=allowed)), refusal, "topics")

        def guarded(request: Request, message: Any) -> Any:
            return with_divided(
                authorizer.clocks,
                message.topics,
                lambda topic: is_allowed(request, topic),
                lambda allowed, denied: answer(request, message, allowed, denied),
            )

        return guarded

    return guard
