"""DescribeProducers (key 61), version 0.

Behaviour: for each partition the producers that its log knows, with their last sequence and timestamp, and where the
transaction began that each has open. All in turns of the loop: a log may know thousands of producers, and a request may
name thousands of logs.
"""

from typing import Any

from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.errors import ErrorCode, KafkaError
from lamina.image.topic_names import check_topic_name
from lamina.wire.api_keys import DESCRIBE_PRODUCERS as API_KEY
from lamina.wire.building import Shape, response_shape

_NONE = -1


async def handle(partitions: Partitions, clocks: Clocks, request: Request, message: Any) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    turns = Turns(clocks)
    topics = []
    for topic in message.topics:
        answered = []
        for index in topic.partition_indexes:
            answered.append(await _partition(partitions, turns, partition_shape, topic.name, index))
            await turns.step()
        topics.append(topic_shape(name=topic.name, partitions=tuple(answered)))
        await turns.step()
    return shape(topics=tuple(topics))


async def _partition(partitions: Partitions, turns: Turns, shape: Shape, topic: str, index: int) -> Any:
    try:
        check_topic_name(topic)
        partition = partitions.get(topic, index)
        partition.check_online()
    except KafkaError as error:
        return _failed(shape, index, error)
    producer_shape = shape.of("active_producers")
    producers = []
    for producer in list(partition.log.producers.producers.values()):
        first_offset = producer.current_txn_first_offset
        producers.append(
            producer_shape(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=_NONE if first_offset is None else first_offset,
            )
        )
        await turns.step()
    return shape(
        partition_index=index, error_code=ErrorCode.NONE, error_message=None, active_producers=tuple(producers)
    )


def _failed(shape: Shape, index: int, error: KafkaError) -> Any:
    return shape(partition_index=index, error_code=error.code, error_message=str(error), active_producers=())


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    return shape(
        topics=tuple(
            topic_shape(
                name=topic.name,
                partitions=tuple(
                    _failed(topic_shape.of("partitions"), index, error) for index in topic.partition_indexes
                ),
            )
            for topic in message.topics
        ),
    )


API = Api(API_KEY, "DescribeProducers", range(1), error_response)
