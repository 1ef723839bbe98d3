"""What requests about transactions check beside the transactional id.

Must not know what transactions do.
"""

from typing import Any

from lamina.broker.requests.api import Handler
from lamina.broker.requests.authorization.authorizer import Authorizer
from lamina.broker.requests.authorization.guards import Guarding, check, denial, needing, on_cluster, with_divided
from lamina.broker.requests.authorization.topics import each_topic
from lamina.broker.requests.request import Request
from lamina.broker.turns import Turns, in_turns
from lamina.errors import ErrorCode
from lamina.image.topic import INTERNAL_TOPICS
from lamina.security.access_index import CLUSTER_NAME
from lamina.security.acls import Operation, ResourceType
from lamina.wire.building import response_shape

TOPIC, TRANSACTIONAL_ID = ResourceType.TOPIC, ResourceType.TRANSACTIONAL_ID
_FIRST_BATCHED = 4

txn_offset_commit = each_topic(Operation.READ)


def init_producer_id(guarding: Guarding) -> Handler:
    """WRITE of the transactional id; without one, whoever may write to some topic may be idempotent there (S53)."""
    handle, authorizer = guarding.handle, guarding.authorizer

    def guarded(request: Request, message: Any) -> Any:
        if message.transactional_id is not None:
            check(authorizer, request, Operation.WRITE, TRANSACTIONAL_ID, message.transactional_id)
        elif not (
            authorizer.allows_filtering(request, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME)
            or authorizer.allows_on_any(request, Operation.WRITE, TOPIC)
        ):
            raise denial(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)
        return handle(request, message)

    return guarded


def add_partitions(guarding: Guarding) -> Handler:
    """Of clients WRITE of the transactional id and of each topic; all are added or none. Of brokers CLUSTER_ACTION."""
    api, handle, authorizer = guarding.api, guarding.handle, guarding.authorizer
    of_brokers = needing(on_cluster(Operation.CLUSTER_ACTION))(guarding)

    def guarded(request: Request, message: Any) -> Any:
        if request.api_version >= _FIRST_BATCHED:
            return of_brokers(request, message)
        check(authorizer, request, Operation.WRITE, TRANSACTIONAL_ID, message.v3_and_below_transactional_id)

        def is_allowed(topic: Any) -> bool:
            return topic.name not in INTERNAL_TOPICS and authorizer.allows(request, Operation.WRITE, TOPIC, topic.name)

        def answer(_: tuple[Any, ...], denied: tuple[Any, ...]) -> Any:
            if not denied:
                return handle(request, message)
            names = {topic.name for topic in denied}
            return guarding.apart(message, lambda: refusal(request, message, names))

        return with_divided(authorizer.clocks, message.v3_and_below_topics, is_allowed, answer)

    def refusal(request: Request, message: Any, denied: set[str]) -> Any:
        shape = response_shape(api.key, request.api_version)
        topic_shape = shape.of("results_by_topic_v3_and_below")
        partition_shape = topic_shape.of("results_by_partition")
        return shape(
            results_by_topic_v3_and_below=tuple(
                topic_shape(
                    name=topic.name,
                    results_by_partition=tuple(
                        partition_shape(
                            partition_index=index,
                            partition_error_code=_code(authorizer, topic.name in denied, topic.name, index),
                        )
                        for index in topic.partitions
                    ),
                )
                for topic in message.v3_and_below_topics
            )
        )

    return guarded


def _code(authorizer: Authorizer, is_denied: bool, topic: str, index: int) -> ErrorCode:
    if is_denied:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    is_known = authorizer.has_partition(topic, index)
    return ErrorCode.OPERATION_NOT_ATTEMPTED if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def describe_transactions(authorizer: Authorizer, request: Request, response: Any) -> Any:
    """Without the topics that may not be described."""
    turns = Turns(authorizer.clocks)
    states = []
    for state in response.transaction_states:
        topics = []
        for topic in state.topics:
            if authorizer.allows_filtering(request, Operation.DESCRIBE, TOPIC, topic.topic):
                topics.append(topic)
            await turns.step()
        states.append(state.replace(topics=tuple(topics)))
        await turns.step()
    return response.replace(transaction_states=tuple(states))


async def list_transactions(authorizer: Authorizer, request: Request, response: Any) -> Any:
    return response.replace(
        transaction_states=tuple(
            [
                state
                async for state in in_turns(response.transaction_states, authorizer.clocks)
                if authorizer.allows_filtering(request, Operation.DESCRIBE, TRANSACTIONAL_ID, state.transactional_id)
            ]
        )
    )
