"""AlterReplicaLogDirs (key 34), versions 1-2.

Behaviour: each partition begins to move to another log directory of this broker, or stops moving if that is where it
is (R70); the answer does not wait for the copy, which DescribeLogDirs tells of. A partition that other brokers keep is
REPLICA_NOT_AVAILABLE, and comes to that directory if it ever comes to this broker before its next start.
Version notes: the versions differ in their encoding only.
"""

from collections import defaultdict
from typing import Any

from lamina.broker.moving.moves import Moves
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.errors import ErrorCode, KafkaError
from lamina.topic_partition import TopicPartition
from lamina.wire.building import response_shape

API_KEY = 34


async def handle(moves: Moves, clocks: Clocks, request: Request, message: Any) -> Any:
    outcomes: dict[TopicPartition, int] = {}
    turns = Turns(clocks)
    for (topic, index), path in _wanted(message).items():
        try:
            await moves.move(topic, index, path)
            outcomes[topic, index] = ErrorCode.NONE
        except KafkaError as error:
            outcomes[topic, index] = error.code
        await turns.step()
    return _response(request, outcomes)


def _wanted(message: Any) -> dict[TopicPartition, str]:
    """Where each partition is to be; of one that is named twice the last counts, as in Kafka."""
    return {
        (topic.name, index): directory.path
        for directory in message.dirs
        for topic in directory.topics
        for index in topic.partitions
    }


def _response(request: Request, outcomes: dict[TopicPartition, int]) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("results")
    partition_shape = topic_shape.of("partitions")
    by_topic: defaultdict[str, list[Any]] = defaultdict(list)
    for (topic, index), code in outcomes.items():
        by_topic[topic].append(partition_shape(partition_index=index, error_code=code))
    return shape(results=tuple(topic_shape(topic_name=name, partitions=tuple(some)) for name, some in by_topic.items()))


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return _response(request, dict.fromkeys(_wanted(message), error.code))


API = Api(API_KEY, "AlterReplicaLogDirs", range(1, 3), error_response)
