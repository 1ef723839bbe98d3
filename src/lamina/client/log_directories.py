"""The log directories of one broker, and partitions that move between them, which librdkafka cannot ask for.

Owns the requests. Must not know any command, nor how long somebody waits.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.errors import error_from_code
from lamina.peer.call import MessageCall
from lamina.peer.cluster import ClusterClient
from lamina.peer.target import Broker
from lamina.topic_partition import TopicPartition, by_topic
from lamina.wire.api_keys import ALTER_REPLICA_LOG_DIRS, DESCRIBE_LOG_DIRS

_ALTER_VERSIONS = range(1, 3)
_DESCRIBE_VERSIONS = range(1, 5)
_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Log:
    """A log of a partition in a directory."""

    path: str
    size_bytes: int
    offset_lag: int


@dataclass(frozen=True, slots=True)
class Described:
    paths: tuple[str, ...]
    logs: Mapping[TopicPartition, Log] = field(default_factory=dict)
    """Where each partition is."""
    futures: Mapping[TopicPartition, Log] = field(default_factory=dict)
    """Where it is being moved to."""


class LogDirectories:
    def __init__(self, cluster: Cluster, broker_id: int) -> None:
        self._cluster = cluster
        self._broker_id = broker_id

    def described(self, partitions: Collection[TopicPartition]) -> Described:
        return self._cluster.ask(lambda peers: ask_directories(peers, self._broker_id, partitions))

    def move(self, partitions: Collection[TopicPartition], path: str) -> dict[TopicPartition, ClientError]:
        """Begin to move them there. Returns why some are not moved."""
        return self._cluster.ask(lambda peers: _move(peers, self._broker_id, partitions, path))

    def watch(self, partitions: Collection[TopicPartition], is_over: Callable[[Described], bool]) -> Described:
        """Ask again and again until it is over."""

        async def watch(peers: ClusterClient) -> Described:
            while not is_over(described := await ask_directories(peers, self._broker_id, partitions)):
                await asyncio.sleep(_POLL_SECONDS)
            return described

        return self._cluster.ask(watch)


async def ask_directories(peers: ClusterClient, broker_id: int, partitions: Collection[TopicPartition]) -> Described:
    """What a broker has of some partitions. Raises :class:`ClientError` where it does not tell, or `KafkaError`."""
    topics = [{"topic": topic, "partitions": indexes} for topic, indexes in by_topic(partitions).items()]
    response = await peers.request(Broker(broker_id), MessageCall(DESCRIBE_LOG_DIRS, _DESCRIBE_VERSIONS, topics=topics))
    _check(getattr(response, "error_code", 0), f"broker {broker_id} does not tell its log directories")
    logs: dict[TopicPartition, Log] = {}
    futures: dict[TopicPartition, Log] = {}
    for result in response.results:
        for topic in result.topics:
            for one in topic.partitions:
                log = Log(result.log_dir, int(one.partition_size), int(one.offset_lag))
                (futures if one.is_future_key else logs)[topic.name, int(one.partition_index)] = log
    return Described(tuple(result.log_dir for result in response.results), logs, futures)


async def _move(
    peers: ClusterClient, broker_id: int, partitions: Collection[TopicPartition], path: str
) -> dict[TopicPartition, ClientError]:
    topics = [{"name": topic, "partitions": indexes} for topic, indexes in by_topic(partitions).items()]
    call = MessageCall(ALTER_REPLICA_LOG_DIRS, _ALTER_VERSIONS, dirs=[{"path": path, "topics": topics}])
    response = await peers.send_once(Broker(broker_id), call)
    refused: dict[TopicPartition, ClientError] = {}
    for topic in response.results:
        for one in topic.partitions:
            if one.error_code:
                refused[topic.topic_name, int(one.partition_index)] = _sentence(one.error_code, broker_id)
    return refused


def _check(code: Any, sentence: str) -> None:
    if code:
        raise ClientError(f"{sentence}: {error_from_code(int(code), '').code.name}; look at its log")


def _sentence(code: Any, broker_id: int) -> ClientError:
    name = error_from_code(int(code), "").code.name
    advice = {
        "KAFKA_STORAGE_ERROR": f"a log directory of broker {broker_id} is offline; while that is so nothing is moved",
        "INVALID_TOPIC_EXCEPTION": "its topic has too long a name to be moved",
        "REPLICA_NOT_AVAILABLE": f"broker {broker_id} has no replica of it; `lamina topics describe` shows who has",
        "UNKNOWN_TOPIC_OR_PARTITION": "it does not exist; `lamina topics list` shows all topics",
    }
    return ClientError(advice.get(name, f"broker {broker_id} answers {name}; look at its log"))
