"""DescribeLogDirs (key 35), versions 1-5.

Behaviour: for each log directory the partitions in it and their sizes: all of them for a null list, else those
asked for that are there. A partition that moves to another directory is told there too, as a future one, with how many
offsets its copy is behind; one that does not tells how far it is behind its high watermark (R71). A directory that is
offline says KAFKA_STORAGE_ERROR and nothing else. Many partitions are told in turns of the loop.
Version notes: a general error from v3; the volume's total and usable bytes from v4; from v5 whether it is
cordoned (KIP-1066), which none is.
"""

import shutil
from collections import defaultdict
from collections.abc import Set
from typing import Any

from lamina.broker.moving.moves import Moves
from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.threads import Threads
from lamina.broker.turns import Turns
from lamina.clocks import Clocks
from lamina.errors import ErrorCode, KafkaError
from lamina.log.directory import LogDirectory
from lamina.topic_partition import TopicPartition
from lamina.wire.api_keys import DESCRIBE_LOG_DIRS as API_KEY
from lamina.wire.building import Shape, response_shape

_UNKNOWN = -1


async def handle(
    directories: LogDirectories,
    partitions: Partitions,
    moves: Moves,
    threads: Threads,
    clocks: Clocks,
    request: Request,
    message: Any,
) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    asked = None
    if message.topics is not None:
        asked = {(topic.topic, index) for topic in message.topics for index in topic.partitions}
    turns = Turns(clocks)
    results = [
        await _result(threads, turns, shape.of("results"), directory, partitions, moves, asked)
        for directory in directories
    ]
    return shape(error_code=ErrorCode.NONE, results=tuple(results))


async def _result(
    threads: Threads,
    turns: Turns,
    shape: Shape,
    directory: LogDirectory,
    hosted: Partitions,
    moves: Moves,
    asked: Set[TopicPartition] | None,
) -> Any:
    if directory.failure is not None:
        return _offline(shape, directory)
    topic_shape = shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    partitions: defaultdict[str, list[Any]] = defaultdict(list)

    def add(key: TopicPartition, size_bytes: int, offset_lag: int, *, is_future: bool) -> None:
        if asked is None or key in asked:
            partitions[key[0]].append(
                partition_shape(
                    partition_index=key[1], partition_size=size_bytes, offset_lag=offset_lag, is_future_key=is_future
                )
            )

    futures = moves.futures_in(directory)
    for key, future in futures.items():
        add(key, *future, is_future=True)
        await turns.step()
    for key, log in list(directory.logs.items()):
        if key not in futures:
            add(key, log.size_bytes(), _lag(hosted.find(*key)), is_future=False)
        await turns.step()
    try:
        volume = await threads.run(lambda: shutil.disk_usage(directory.path))
    except OSError:
        return _offline(shape, directory)
    topics = []
    for topic, of_topic in partitions.items():
        topics.append(topic_shape(name=topic, partitions=tuple(of_topic)))
        await turns.step()
    return shape(
        error_code=ErrorCode.NONE,
        log_dir=directory.path,
        topics=tuple(topics),
        total_bytes=volume.total,
        usable_bytes=volume.free,
        is_cordoned=False,
    )


def _lag(partition: Partition | None) -> int:
    """How much a replica lacks of what is committed."""
    if partition is None:
        return _UNKNOWN
    return max(partition.high_watermark - partition.log.log_end_offset, 0)


def _offline(shape: Shape, directory: LogDirectory) -> Any:
    return shape(
        error_code=ErrorCode.KAFKA_STORAGE_ERROR,
        log_dir=directory.path,
        topics=(),
        total_bytes=_UNKNOWN,
        usable_bytes=_UNKNOWN,
        is_cordoned=False,
    )


def error_response(request: Request, message: Any, error: KafkaError) -> Any:
    return response_shape(API_KEY, request.api_version)(error_code=error.code, results=())


API = Api(API_KEY, "DescribeLogDirs", range(1, 6), error_response)
