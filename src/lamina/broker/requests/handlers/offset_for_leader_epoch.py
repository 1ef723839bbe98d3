"""OffsetForLeaderEpoch (key 23), versions 2-4.

Behaviour: for a leader epoch the largest known one at or below it and the offset where that one ends, so that a
client or a follower learns whether records it has were lost. -1 and -1 for an epoch that has not begun. Only the leader
answers.
Version notes: v3 names the replica that asks, which makes no difference.
"""

from typing import Any

from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.errors import ErrorCode, KafkaError
from lamina.log.epochs import EpochStart
from lamina.wire.api_keys import OFFSET_FOR_LEADER_EPOCH as API_KEY
from lamina.wire.building import Shape, response_shape

_UNKNOWN = EpochStart(-1, -1)


async def handle(partitions: Partitions, clocks: Clocks, request: Request, message: Any) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    turns = Turns(clocks)
    topics = []
    for topic in message.topics:
        answered = []
        for asked in topic.partitions:
            answered.append(_partition(partitions, partition_shape, topic.topic, asked))
            await turns.step()
        topics.append(topic_shape(topic=topic.topic, partitions=tuple(answered)))
        await turns.step()
    return shape(topics=tuple(topics))


def _partition(partitions: Partitions, shape: Shape, topic: str, asked: Any) -> Any:
    end, error_code = _UNKNOWN, ErrorCode.NONE
    try:
        partition = partitions.get(topic, asked.partition)
        partition.check_served_here()
        partition.check_epoch(asked.current_leader_epoch)
        partition.require_leader()
        end = partition.log.epochs.end_of(asked.leader_epoch, partition.log.log_end_offset)
    except KafkaError as error:
        error_code = error.code
    return shape(error_code=error_code, partition=asked.partition, leader_epoch=end.epoch, end_offset=end.start_offset)


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    return shape(
        topics=tuple(
            topic_shape(
                topic=topic.topic,
                partitions=tuple(
                    partition_shape(error_code=error.code, partition=asked.partition, leader_epoch=-1, end_offset=-1)
                    for asked in topic.partitions
                ),
            )
            for topic in message.topics
        ),
    )


API = Api(API_KEY, "OffsetForLeaderEpoch", range(2, 5), error_response)
