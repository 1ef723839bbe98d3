"""DescribeLogDirs (key 35), versions 1-5.

Behaviour: for each log directory the partitions in it and their sizes: all of them for a null list, else those
asked for that are there. A directory that is offline says KAFKA_STORAGE_ERROR and nothing else. No partition
lags or is on its way to another directory.
Version notes: a general error from v3; the volume's total and usable bytes from v4; from v5 whether it is
cordoned (KIP-1066), which none is.
"""

import asyncio
import shutil
from collections import defaultdict
from collections.abc import Set
from typing import Any

from lamina.broker.partitions.log_directories import LogDirectories
from lamina.broker.requests.api import Api
from lamina.broker.requests.request import Request
from lamina.broker.threads import Threads
from lamina.errors import ErrorCode, KafkaError
from lamina.log.directory import LogDirectory
from lamina.topic_partition import TopicPartition
from lamina.wire.building import Shape, response_shape

API_KEY = 35
_UNKNOWN = -1
_PARTITIONS_AT_A_TIME = 64


async def handle(directories: LogDirectories, threads: Threads, request: Request, message: Any) -> Any:
    shape = response_shape(API_KEY, request.api_version)
    asked = None
    if message.topics is not None:
        asked = {(topic.topic, index) for topic in message.topics for index in topic.partitions}
    results = [await _result(threads, shape.of("results"), directory, asked) for directory in directories]
    return shape(error_code=ErrorCode.NONE, results=tuple(results))


async def _result(threads: Threads, shape: Shape, directory: LogDirectory, asked: Set[TopicPartition] | None) -> Any:
    if directory.failure is not None:
        return _offline(shape, directory)
    sizes: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for number, ((topic, index), log) in enumerate(list(directory.logs.items()), 1):
        if asked is None or (topic, index) in asked:
            sizes[topic][index] = log.size_bytes()
        if number % _PARTITIONS_AT_A_TIME == 0:
            await asyncio.sleep(0)
    try:
        volume = await threads.run(lambda: shutil.disk_usage(directory.path))
    except OSError:
        return _offline(shape, directory)
    topic_shape = shape.of("topics")
    partition_shape = topic_shape.of("partitions")
    return shape(
        error_code=ErrorCode.NONE,
        log_dir=directory.path,
        topics=tuple(
            topic_shape(
                name=topic,
                partitions=tuple(
                    partition_shape(partition_index=index, partition_size=size, offset_lag=0, is_future_key=False)
                    for index, size in by_index.items()
                ),
            )
            for topic, by_index in sizes.items()
        ),
        total_bytes=volume.total,
        usable_bytes=volume.free,
        is_cordoned=False,
    )


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
