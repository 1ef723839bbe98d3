"""ListOffsets (key 2), versions 1-11.

Behaviour: latest (-1), earliest (-2), the largest timestamp (-3, v7), and the first record at or after a time.
A reader of committed records gets the last stable offset for the high watermark, another broker the log end. Only the
leader answers, except who asks as replica -2. Until a new leader knows that all before its epoch is committed, what is
not below its high watermark is OFFSET_NOT_AVAILABLE (LEADER_NOT_AVAILABLE below v5): else offsets would go back (R38).
Nothing found is -1 and -1. A partition that is asked for twice is INVALID_REQUEST; a negative timestamp that has no
meaning, or none yet in this version, is UNSUPPORTED_VERSION. Many partitions are answered in turns of the loop.
Version notes: earliest local (-4, v8) is the earliest; latest tiered (-5, v9) and earliest pending upload (-6, v11) are
nowhere: nothing is tiered, and so nothing waits for the timeout of v10.
"""

from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from itertools import repeat
from typing import Any, NamedTuple

from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.threads import Threads
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.errors import (
    ErrorCode,
    InvalidRequest,
    KafkaError,
    LeaderNotAvailable,
    OffsetNotAvailable,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from lamina.log.lookup import Search, TimestampedOffset, offset_for_timestamp, offset_of_max_timestamp
from lamina.wire.api_keys import LIST_OFFSETS as API_KEY
from lamina.wire.building import Shape, response_shape

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
_NOTHING = -1
_FIRST_VERSIONS = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_FIRST_WITH_OFFSET_NOT_AVAILABLE = 5
_ENTRIES_AT_A_TIME = 256

_CONSUMER = -1
_DEBUGGING = -2
"""The replica id of a reader that is shown everything, on any replica."""

Duplicates = set[tuple[str, int]]


class Found(NamedTuple):
    offset: int = _NOTHING
    timestamp: int = _NOTHING
    leader_epoch: int = _NOTHING


def handle(partitions: Partitions, threads: Threads, clocks: Clocks, request: Request, message: Any) -> Any:
    count = len(message.topics) + sum(len(topic.partitions) for topic in message.topics)
    if count > _ENTRIES_AT_A_TIME:
        return _handle_in_turns(partitions, threads, clocks, request, message)
    if any(_is_by_time(request, asked) for topic in message.topics for asked in topic.partitions):
        return _handle_in_turns(partitions, threads, clocks, request, message)
    duplicates = _duplicates(message)
    answers = [
        _find(partitions, request, message, topic.name, asked, duplicates)
        for topic in message.topics
        for asked in topic.partitions
    ]
    return _answer(request, message, answers)


async def _handle_in_turns(
    partitions: Partitions, threads: Threads, clocks: Clocks, request: Request, message: Any
) -> Any:
    """As above, where batches have to be opened, each on a thread, or where partitions are many."""
    turns = Turns(clocks)
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    duplicates = _duplicates(message)
    topics = []
    for topic in message.topics:
        answered = []
        for asked in topic.partitions:
            if _is_by_time(request, asked):
                answer = await _find_by_time(partitions, threads, request, message, topic.name, asked, duplicates)
            else:
                answer = _find(partitions, request, message, topic.name, asked, duplicates)
            answered.append(_answer_one(partition_shape, asked.partition_index, answer))
            await turns.step()
        topics.append(topic_shape(name=topic.name, partitions=tuple(answered)))
        await turns.step()
    return shape(topics=tuple(topics))


def _is_by_time(request: Request, asked: Any) -> bool:
    """Whether batches have to be opened to answer."""
    if asked.timestamp == MAX_TIMESTAMP:
        return request.api_version >= _FIRST_VERSIONS[MAX_TIMESTAMP]
    return bool(asked.timestamp >= 0)


def _duplicates(message: Any) -> Duplicates:
    """Partitions asked for more than once: Kafka refuses every mention of them."""
    count = Counter((topic.name, asked.partition_index) for topic in message.topics for asked in topic.partitions)
    return {partition for partition, times in count.items() if times > 1}


def _partition(partitions: Partitions, message: Any, topic: str, asked: Any, duplicates: Duplicates) -> Partition:
    index = asked.partition_index
    if (topic, index) in duplicates:
        raise InvalidRequest(f"{topic}-{index} is asked for more than once")
    partition = partitions.get(topic, index)
    partition.check_served_here()
    partition.check_epoch(getattr(asked, "current_leader_epoch", -1))
    if message.replica_id != _DEBUGGING:
        partition.require_leader()
    return partition


def _find(
    partitions: Partitions, request: Request, message: Any, topic: str, asked: Any, duplicates: Duplicates
) -> Found | KafkaError:
    try:
        partition = _partition(partitions, message, topic, asked, duplicates)
        if request.api_version < _FIRST_VERSIONS.get(asked.timestamp, request.api_version + 1):
            raise UnsupportedVersion(f"version {request.api_version} of ListOffsets has no timestamp {asked.timestamp}")
        if asked.timestamp == LATEST:
            _check_available(partition, request, message)
            return Found(_bound(partition, message), leader_epoch=partition.epoch)
    except KafkaError as error:
        return error.without_frames()
    if asked.timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return Found()
    log = partition.log
    epoch = log.epochs.epoch_at(log.log_start_offset)
    # A follower's empty log knows no epoch; it is in that of its leader.
    return Found(log.log_start_offset, leader_epoch=partition.epoch if epoch == _NOTHING else epoch)


def _check_available(partition: Partition, request: Request, message: Any) -> None:
    """What consumers were told by the leader before may lie above the high watermark that this one knows (R38, R88)."""
    leader = partition.leader
    if message.replica_id != _CONSUMER or leader is None or partition.high_watermark >= leader.start_offset:
        return
    sentence = f"{partition.log.name} has a new leader, which does not know yet what is committed"
    is_known = request.api_version >= _FIRST_WITH_OFFSET_NOT_AVAILABLE
    raise OffsetNotAvailable(sentence) if is_known else LeaderNotAvailable(sentence)


async def _find_by_time(
    partitions: Partitions,
    threads: Threads,
    request: Request,
    message: Any,
    topic: str,
    asked: Any,
    duplicates: Duplicates,
) -> Found | KafkaError:
    try:
        partition = _partition(partitions, message, topic, asked, duplicates)
        bound, limit_bytes = _bound(partition, message), partition.rules.max_decompressed_bytes
        if asked.timestamp == MAX_TIMESTAMP:
            search = offset_of_max_timestamp(partition.log, bound, limit_bytes)
        else:
            search = offset_for_timestamp(partition.log, asked.timestamp, bound, limit_bytes)
        found = await _run(partitions, threads, partition, search)
        if found is None:
            _check_available(partition, request, message)
            return Found()
    except KafkaError as error:
        return error.without_frames()
    return Found(found.offset, found.timestamp, found.leader_epoch)


async def _run(
    partitions: Partitions, threads: Threads, partition: Partition, search: Search
) -> TimestampedOffset | None:
    """Take the steps of a search on threads, and end it when the partition goes away meanwhile."""
    with closing(search):
        try:
            step = next(search)
            while True:
                try:
                    found = await threads.run(step)
                except Exception as error:
                    step = search.throw(error)
                    continue
                if partitions.get(partition.topic, partition.index) is not partition:
                    raise UnknownTopicOrPartition(f"{partition.log.name} was replaced by another of its name")
                partition.check_served_here()
                step = search.send(found)
        except StopIteration as end:
            result: TimestampedOffset | None = end.value
            return result


def _bound(partition: Partition, message: Any) -> int:
    if message.replica_id != _CONSUMER:
        return partition.log.log_end_offset
    return partition.bound(getattr(message, "isolation_level", 0))


def _answer(request: Request, message: Any, answers: Iterable[Found | KafkaError]) -> Any:
    """``answers`` in the order of the partitions in ``message``."""
    shape = response_shape(API_KEY, request.api_version)
    topic_shape = shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    answer = iter(answers)
    return shape(
        topics=tuple(
            topic_shape(
                name=topic.name,
                partitions=tuple(
                    _answer_one(partition_shape, asked.partition_index, next(answer)) for asked in topic.partitions
                ),
            )
            for topic in message.topics
        ),
    )


def _answer_one(shape: Shape, index: int, answer: Found | KafkaError) -> Any:
    found, error_code = (Found(), answer.code) if isinstance(answer, KafkaError) else (answer, ErrorCode.NONE)
    return shape(
        partition_index=index,
        error_code=error_code,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return _answer(request, message, repeat(error))


API = Api(API_KEY, "ListOffsets", range(1, 12), error_response)
