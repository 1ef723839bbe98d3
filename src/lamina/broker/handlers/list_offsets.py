"""ListOffsets (key 2), versions 1-9.

Behaviour: latest (-1), earliest (-2), the largest timestamp (-3, v7), and the first record at or after a time.
A reader of committed records gets the last stable offset for the high watermark. Nothing
found is -1 and -1.
Version notes: earliest local (-4, v8) is the earliest; latest tiered (-5, v9) is nowhere: nothing is tiered.
"""

from typing import Any, NamedTuple

from lamina.broker.node import Node
from lamina.broker.partition import Partition
from lamina.broker.router import Api, Request
from lamina.errors import ErrorCode, KafkaError
from lamina.log.lookup import offset_for_timestamp, offset_of_max_timestamp
from lamina.wire.building import Shape, response_shape

API_KEY = 2
LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
_NOTHING = -1


class Found(NamedTuple):
    offset: int = _NOTHING
    timestamp: int = _NOTHING
    leader_epoch: int = _NOTHING


def handle(node: Node, request: Request, message: Any) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    isolation_level = getattr(message, "isolation_level", 0)
    return shape(
        throttle_time=0,
        topics=tuple(
            topic_shape(
                name=topic.name,
                partitions=tuple(
                    _partition(node, topic_shape.of("partitions"), topic.name, asked, isolation_level)
                    for asked in topic.partitions
                ),
            )
            for topic in message.topics
        ),
    )


def _partition(node: Node, shape: Shape, topic: str, asked: Any, isolation_level: int) -> Any:
    found, error_code = Found(), ErrorCode.NONE
    try:
        partition = node.partitions.get(topic, asked.partition_index)
        partition.check_online()
        partition.check_epoch(getattr(asked, "current_leader_epoch", -1))
        found = _find(partition, asked.timestamp, isolation_level)
    except KafkaError as error:
        error_code = error.code
    return shape(
        partition_index=asked.partition_index,
        error_code=error_code,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )


def _find(partition: Partition, timestamp: int, isolation_level: int) -> Found:
    log = partition.log
    bound = partition.bound(isolation_level)
    if timestamp == LATEST:
        return Found(bound, leader_epoch=partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        epoch = log.epochs.epoch_at(log.log_start_offset)
        return Found(log.log_start_offset, leader_epoch=epoch)
    if timestamp == LATEST_TIERED:
        return Found()
    limit_bytes = partition.rules.max_decompressed_bytes
    if timestamp == MAX_TIMESTAMP:
        found = offset_of_max_timestamp(log, bound, limit_bytes)
    else:
        found = offset_for_timestamp(log, timestamp, bound, limit_bytes)
    return Found() if found is None else Found(found.offset, found.timestamp, found.leader_epoch)


def error_answer(request: Request, message: Any, error: KafkaError) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    return shape(
        throttle_time=0,
        topics=tuple(
            topic_shape(
                name=topic.name,
                partitions=tuple(
                    partition_shape(
                        partition_index=asked.partition_index,
                        error_code=error.code,
                        timestamp=_NOTHING,
                        offset=_NOTHING,
                        leader_epoch=_NOTHING,
                    )
                    for asked in topic.partitions
                ),
            )
            for topic in message.topics
        ),
    )


API = Api(API_KEY, "ListOffsets", range(1, 10), handle, error_answer)
