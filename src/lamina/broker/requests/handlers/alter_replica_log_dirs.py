"""AlterReplicaLogDirs (key 34), versions 1-2.

Behaviour: each partition begins to move to another log directory of this broker, or stops moving if that is where it
is (R70); the answer does not wait for the copy, which DescribeLogDirs tells of. A partition that other brokers keep is
REPLICA_NOT_AVAILABLE, and comes to that directory if it ever comes to this broker before its next start. All in turns
of the loop.
Version notes: the versions differ in their encoding only.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from lamina.broker.moving.moves import Moves
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.errors import ErrorCode, KafkaError
from lamina.topic_partition import TopicPartition
from lamina.wire.api_keys import ALTER_REPLICA_LOG_DIRS as API_KEY
from lamina.wire.building import response_shape


async def handle(moves: Moves, clocks: Clocks, request: Request, message: Any) -> Any:
    results = _Results(request)
    async for (topic, index), path in in_turns(_wanted(message).items(), clocks):
        try:
            await moves.move(topic, index, path)
            results.add(topic, index, ErrorCode.NONE)
        except KafkaError as error:
            results.add(topic, index, error.code)
    return results.response([topic async for topic in in_turns(results.topics(), clocks)])


def _wanted(message: Any) -> dict[TopicPartition, str]:
    """Where each partition is to be; of one that is named twice the last counts, as in Kafka."""
    return {
        (topic.name, index): directory.path
        for directory in message.dirs
        for topic in directory.topics
        for index in topic.partitions
    }


class _Results:
    """The response as it grows, one partition after another."""

    def __init__(self, request: Request) -> None:
        self._shape = response_shape(API_KEY, request.api_version)
        self._topic = self._shape.of("results")
        self._partition = self._topic.of("partitions")
        self._by_topic: defaultdict[str, list[Any]] = defaultdict(list)

    def add(self, topic: str, index: int, code: int) -> None:
        self._by_topic[topic].append(self._partition(partition_index=index, error_code=code))

    def topics(self) -> Iterator[Any]:
        for name, some in self._by_topic.items():
            yield self._topic(topic_name=name, partitions=tuple(some))

    def response(self, topics: Iterable[Any]) -> Any:
        return self._shape(results=tuple(topics))


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    results = _Results(request)
    for topic, index in _wanted(message):
        results.add(topic, index, error.code)
    return results.response(results.topics())


API = Api(API_KEY, "AlterReplicaLogDirs", range(1, 3), error_response)
