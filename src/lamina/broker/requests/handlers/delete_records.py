"""DeleteRecords (key 21), versions 0-2.

Behaviour: a partition's log start moves up to the offset (-1: to the high watermark), and the answer tells where
it is now on all replicas that are online; it never moves back. Where they do not follow within the timeout it says
REQUEST_TIMED_OUT, and the records are gone all the same. An offset beyond the high watermark is OFFSET_OUT_OF_RANGE.
Internal topics are refused with INVALID_TOPIC_EXCEPTION, topics that do not delete by policy with POLICY_VIOLATION.
Version notes: the versions differ in their encoding only.
Not done: as in Kafka the new start is written to disk with the next checkpoint, so that a crash may bring records back.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from lamina.broker.partitions.commits import all_deleted_within
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.errors import ErrorCode, InvalidTopic, KafkaError, OffsetOutOfRange, PolicyViolation
from lamina.image.topic import INTERNAL_TOPICS
from lamina.topic_partition import TopicPartition
from lamina.wire.api_keys import DELETE_RECORDS as API_KEY
from lamina.wire.building import Shape, response_shape

HIGH_WATERMARK = -1
_UNKNOWN = -1

_Deleted = tuple[Partition, int]
"""A partition, and where its log has to start on other replicas."""


async def handle(partitions: Partitions, clocks: Clocks, request: Request, message: Any) -> Any:
    outcomes: list[_Deleted | KafkaError] = []
    turns = Turns(clocks)
    for topic in message.topics:
        for asked in topic.partitions:
            try:
                outcomes.append(_delete(partitions, topic.name, asked.partition_index, asked.offset))
            except KafkaError as error:
                outcomes.append(error.without_frames())
            # Each may write a small file, and a request may name thousands.
            await turns.step()
        await turns.step()
    followed = [one for one in outcomes if isinstance(one, tuple) and one[0].is_replicated]
    timeout_ms = message.timeout // timedelta(milliseconds=1)
    failed = await all_deleted_within(followed, timeout_ms, clocks) if followed else {}
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    outcome = iter(outcomes)
    topics = []
    for topic in message.topics:
        answered = []
        for asked in topic.partitions:
            answered.append(_answer(partition_shape, asked.partition_index, next(outcome), failed))
            await turns.step()
        topics.append(topic_shape(name=topic.name, partitions=tuple(answered)))
        await turns.step()
    return shape(topics=tuple(topics))


def _answer(
    shape: Shape, index: int, outcome: _Deleted | KafkaError, failed: Mapping[TopicPartition, KafkaError]
) -> Any:
    if isinstance(outcome, KafkaError):
        return shape(partition_index=index, low_watermark=_UNKNOWN, error_code=outcome.code)
    partition, _ = outcome
    error = failed.get((partition.topic, partition.index))
    if error is not None:
        return shape(partition_index=index, low_watermark=_UNKNOWN, error_code=error.code)
    return shape(partition_index=index, low_watermark=_low_watermark(partition), error_code=ErrorCode.NONE)


def _delete(partitions: Partitions, topic: str, index: int, offset: int) -> _Deleted:
    """Move the log start here."""
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
    return partition, offset


def _low_watermark(partition: Partition) -> int:
    """Where the log starts now, on all replicas; only here if this broker has stopped to lead meanwhile."""
    return partition.log.log_start_offset if partition.leader is None else partition.low_watermark


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
