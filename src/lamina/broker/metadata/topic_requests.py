"""Topics that a broker of a cluster needs, made by the controller: those that clients ask for, and internal ones.

Owns the question to a controller on another broker, and the wait until its topics are known here. Must not know why a
topic is needed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from lamina.broker.metadata.topic_creation import CreateTopics, NewTopic
from lamina.errors import (
    ErrorCode,
    KafkaError,
    LeaderNotAvailable,
    NetworkError,
    NotController,
    RequestTimedOut,
    UnknownServerError,
    error_from_code,
)
from lamina.image.image import Image
from lamina.image.topic import Topic
from lamina.peer.call import MessageCall
from lamina.wire.api_keys import CREATE_TOPICS

_VERSIONS = range(5, 8)
_TIMEOUT_MS = 1000
"""How long a broker that is not the controller any more looks for the next one: a client waits, and asks again."""
_KNOWN_SECONDS = 5.0


class TopicRequests:
    def __init__(
        self,
        is_controller: Callable[[], bool],
        create_here: CreateTopics,
        ask_controller: Callable[[MessageCall], Awaitable[Any]],
        wait_until: Callable[[Callable[[Image], bool]], Awaitable[None]],
        image: Callable[[], Image],
    ) -> None:
        """``wait_until`` waits for an image that this broker has applied."""
        self._is_controller = is_controller
        self._create_here = create_here
        self._ask_controller = ask_controller
        self._wait_until = wait_until
        self._image = image

    async def create(self, topics: Sequence[NewTopic]) -> Mapping[str, Topic | KafkaError]:
        """For each its topic or its error. Raises LEADER_NOT_AVAILABLE where no controller answers."""
        try:
            if self._is_controller():
                return await self._create_here(topics)
            response = await self._ask_controller(_call(topics))
        except (NetworkError, NotController, RequestTimedOut) as error:
            raise LeaderNotAvailable(f"no controller creates topics now: {error}") from None
        errors = {told.name: _error(told) for told in response.topics if told.error_code}
        made = [topic.name for topic in topics if topic.name not in errors]
        try:
            async with asyncio.timeout(_KNOWN_SECONDS):
                await self._wait_until(lambda image: all(name in image.topics for name in made))
        except TimeoutError:
            unknown = LeaderNotAvailable("the topic was created, and this broker does not know it yet")
            return errors | {name: self._image().topics.get(name, unknown) for name in made}
        missing = UnknownServerError("the controller said nothing of the topic")
        return errors | {name: self._image().topics.get(name, missing) for name in made}


def _error(told: Any) -> KafkaError:
    sentence = told.error_message or f"topic {told.name} cannot be created"
    if told.error_code in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER):
        return LeaderNotAvailable(sentence)
    return error_from_code(told.error_code, sentence)


def _call(topics: Sequence[NewTopic]) -> MessageCall:
    return MessageCall(
        CREATE_TOPICS,
        _VERSIONS,
        wait_ms=_TIMEOUT_MS,
        topics=[
            {
                "name": topic.name,
                "num_partitions": topic.partition_count,
                "replication_factor": topic.replication_factor,
                "assignments": [
                    {"partition_index": index, "broker_ids": list(brokers)}
                    for index, brokers in topic.assignments.items()
                ],
                "configs": [{"name": name, "value": value} for name, value in topic.configs.items()],
            }
            for topic in topics
        ],
        timeout=timedelta(milliseconds=_TIMEOUT_MS),
        validate_only=False,
    )
