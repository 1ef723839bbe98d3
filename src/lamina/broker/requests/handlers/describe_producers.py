"""DescribeProducers (key 61), version 0.

Behaviour: for each partition the producers that its log knows, with their last sequence and timestamp, and where the
transaction began that each has open.
"""

import asyncio
from typing import Any

from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.errors import ErrorCode, KafkaError
from lamina.image.topic_names import check_topic_name
from lamina.wire.building import Shape, response_shape

API_KEY = 61
_NONE = -1


async def handle(partitions: Partitions, request: Request, message: Any) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    topics = []
    for topic in message.topics:
        answered = []
        for index in topic.partition_indexes:
            answered.append(_partition(partitions, partition_shape, topic.name, index))
            # A log may know thousands of producers, and a request may name thousands of logs.
            await asyncio.sleep(0)
        topics.append(topic_shape(name=topic.name, partitions=tuple(answered)))
    return shape(topics=tuple(topics))


def _partition(partitions: Partitions, shape: Shape, topic: str, index: int) -> Any:
    try:
        check_topic_name(topic)
        partition = partitions.get(topic, index)
        partition.check_online()
    except KafkaError as error:
        return _failed(shape, index, error)
    producer_shape = shape.of("active_producers")
    return shape(
        partition_index=index,
        error_code=ErrorCode.NONE,
        error_message=None,
        active_producers=tuple(
            producer_shape(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=_NONE
                if producer.current_txn_first_offset is None
                else producer.current_txn_first_offset,
            )
            for producer in partition.log.producers.producers.values()
        ),
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
