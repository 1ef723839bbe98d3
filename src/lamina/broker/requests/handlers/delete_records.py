"""DeleteRecords (key 21), versions 0-2.

Behaviour: a partition's log start moves up to the offset (-1: to the high watermark), and the answer tells where
it is now; it never moves back. An offset beyond the high watermark is OFFSET_OUT_OF_RANGE. Internal topics are
refused with INVALID_TOPIC_EXCEPTION, topics that do not delete by policy with POLICY_VIOLATION.
Version notes: the versions differ in their encoding only.
Not done: the timeout is not looked at, there are no followers to wait for. As in Kafka the new start is written
to disk with the next checkpoint, so that a crash may bring records back.
"""

import asyncio
from typing import Any

from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.errors import ErrorCode, InvalidTopic, KafkaError, OffsetOutOfRange, PolicyViolation
from lamina.image.topic import INTERNAL_TOPICS
from lamina.wire.building import Shape, response_shape

API_KEY = 21
HIGH_WATERMARK = -1
_UNKNOWN = -1


async def handle(partitions: Partitions, request: Request, message: Any) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    topics = []
    for topic in message.topics:
        answered = []
        for asked in topic.partitions:
            answered.append(_partition(partitions, topic_shape.of("partitions"), topic.name, asked))
            # Each may write a small file, and a request may name thousands.
            await asyncio.sleep(0)
        topics.append(topic_shape(name=topic.name, partitions=tuple(answered)))
    return shape(topics=tuple(topics))


def _partition(partitions: Partitions, shape: Shape, topic: str, asked: Any) -> Any:
    low_watermark, error_code = _UNKNOWN, ErrorCode.NONE
    try:
        low_watermark = _delete(partitions, topic, asked.partition_index, asked.offset)
    except KafkaError as error:
        error_code = error.code
    return shape(partition_index=asked.partition_index, low_watermark=low_watermark, error_code=error_code)


def _delete(partitions: Partitions, topic: str, index: int, offset: int) -> int:
    if topic in INTERNAL_TOPICS:
        raise InvalidTopic(f"{topic} is internal: its records cannot be deleted")
    partition = partitions.get(topic, index)
    partition.require_leader()
    partition.check_online()
    log = partition.log
    if not log.config.delete:
        raise PolicyViolation(f"the cleanup policy of {topic} does not delete")
    if offset == HIGH_WATERMARK:
        offset = partition.high_watermark
    if not 0 <= offset <= partition.high_watermark:
        raise OffsetOutOfRange(f"{log.name} ends at {partition.high_watermark} for clients, not at {offset}")
    log.advance_log_start(offset)
    return log.log_start_offset


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    return shape(
        topics=tuple(
            topic_shape(
                name=topic.name,
                partitions=tuple(
                    partition_shape(
                        partition_index=asked.partition_index, low_watermark=_UNKNOWN, error_code=error.code
                    )
                    for asked in topic.partitions
                ),
            )
            for topic in message.topics
        ),
    )


API = Api(API_KEY, "DeleteRecords", range(3), error_response)
