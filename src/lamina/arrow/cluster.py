"""What there is to read: topics and their partitions, and the offset where a partition begins, ends, or is at a time.

Owns these questions to a cluster, many partitions in one request to each leader; a partition whose leader moved is
asked for again by itself, with the client's own patience. Brokers learn of topics one after the other: an answer that
contradicts what was known is not believed at once (`describe_known`). Must not know what is read between two offsets.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from lamina.arrow.errors import ReadError
from lamina.errors import ErrorCode, KafkaError, error_from_code
from lamina.peer.cluster import ClusterClient
from lamina.peer.limits import Limits
from lamina.peer.listing import EARLIEST, LATEST, list_many, offsets_listed
from lamina.peer.routes import metadata_call
from lamina.peer.target import AnyBroker, Broker
from lamina.peer.view import NO_LEADER
from lamina.topic_partition import TopicPartition, name_of

_ASKED_AT_MOST = 6


class Topic(NamedTuple):
    name: str
    topic_id: UUID | None
    """``None`` where the broker is too old to have one."""
    leaders: Mapping[int, int]
    """Broker ids by partition; -1 where there is none now."""
    is_internal: bool


KnownIds = Mapping[TopicPartition, UUID | None]
"""Partitions that were there, and the ids of their topics, ``None`` where that is not known."""


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record as young as a timestamp."""

    timestamp_ms: int
    or_latest: bool = False
    """Where no record is that young: the end, instead of an error."""


Position = int | AtTime
"""An offset, or `EARLIEST`, or `LATEST`, or a time."""


async def describe_topics(cluster: ClusterClient, names: Sequence[str] | None) -> dict[str, Topic]:
    """By name; of all that may be read without names. One that does not exist is not there."""
    response = await cluster.request(AnyBroker(), metadata_call(names))
    found = {}
    for told in response.topics:
        if told.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
            continue
        if told.error_code and told.error_code != ErrorCode.LEADER_NOT_AVAILABLE:
            raise error_from_code(told.error_code, f"topic {told.name} cannot be read")
        leaders = {int(one.partition_index): int(one.leader_id) for one in told.partitions}
        topic_id = getattr(told, "topic_id", None)
        found[told.name] = Topic(told.name, topic_id, dict(sorted(leaders.items())), bool(told.is_internal))
    return found


async def describe_known(
    cluster: ClusterClient, names: Sequence[str] | None, known: KnownIds, limits: Limits
) -> dict[str, Topic]:
    """As `describe_topics`, but asked again, a few times, while it contradicts what was known.

    A broker that lags behind the others tells no topic that is new, or the one that had its name before.
    """
    attempt = 0
    while True:
        topics = await describe_topics(cluster, names)
        attempt += 1
        if attempt == _ASKED_AT_MOST or not contradictions(topics, known):
            return topics
        await asyncio.sleep(min(limits.retry_backoff_ms << (attempt - 1), limits.retry_backoff_max_ms) / 1000)


def contradictions(topics: Mapping[str, Topic], known: KnownIds) -> KnownIds:
    """What was known and is not there, or is another topic's by now."""
    return {
        (name, partition): topic_id
        for (name, partition), topic_id in known.items()
        if name not in topics
        or partition not in topics[name].leaders
        or topic_id not in (None, topics[name].topic_id or topic_id)
    }


def partitions_of(topics: Iterable[Topic]) -> list[TopicPartition]:
    return [(topic.name, partition) for topic in topics for partition in topic.leaders]


async def find_offsets(
    cluster: ClusterClient,
    topics: Mapping[str, Topic],
    positions: Mapping[TopicPartition, Position],
    isolation_level: int,
) -> dict[TopicPartition, int]:
    """Where each position is now. Raises `ReadError` for a time after all records."""
    exact = {where: position for where, position in positions.items() if isinstance(position, int) and position >= 0}
    asked = {where: _timestamp(position) for where, position in positions.items() if where not in exact}
    told = await _list_offsets(cluster, topics, asked, isolation_level)
    late = [where for where, offset in told.items() if offset < 0]
    for where in late:
        position = positions[where]
        if isinstance(position, AtTime) and not position.or_latest:
            raise ReadError(f"{name_of(where)} has no record at or after timestamp {position.timestamp_ms}")
    told |= await _list_offsets(cluster, topics, dict.fromkeys(late, LATEST), isolation_level)
    return {where: exact[where] if where in exact else told[where] for where in positions}


async def find_ends(
    cluster: ClusterClient, topics: Mapping[str, Topic], partitions: Iterable[TopicPartition], isolation_level: int
) -> dict[TopicPartition, int]:
    return await _list_offsets(cluster, topics, dict.fromkeys(partitions, LATEST), isolation_level)


async def find_starts(
    cluster: ClusterClient, topics: Mapping[str, Topic], partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    return await _list_offsets(cluster, topics, dict.fromkeys(partitions, EARLIEST), 0)


def _timestamp(position: Position) -> int:
    return position if isinstance(position, int) else position.timestamp_ms


async def _list_offsets(
    cluster: ClusterClient, topics: Mapping[str, Topic], asked: Mapping[TopicPartition, int], isolation_level: int
) -> dict[TopicPartition, int]:
    by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
    for topic, partition in asked:
        described = topics.get(topic)
        leader = NO_LEADER if described is None else described.leaders.get(partition, NO_LEADER)
        by_leader[leader].append((topic, partition))
    alone = by_leader.pop(NO_LEADER, [])
    found: dict[TopicPartition, int] = {}

    async def ask(leader: int, wanted: list[TopicPartition]) -> None:
        try:
            call = list_many({where: asked[where] for where in wanted}, isolation_level)
            response = await cluster.request(Broker(leader), call)
            found.update(offsets_listed(response))
        except KafkaError:
            pass  # Each is asked for by itself, and its own error is told.
        alone.extend(where for where in wanted if where not in found)

    async def ask_alone(where: TopicPartition) -> None:
        listed = await cluster.list_offset(*where, asked[where], isolation_level=isolation_level)
        found[where] = listed.offset

    await asyncio.gather(*(ask(leader, wanted) for leader, wanted in by_leader.items()))
    await asyncio.gather(*(ask_alone(where) for where in alone))
    return {where: found[where] for where in asked}
