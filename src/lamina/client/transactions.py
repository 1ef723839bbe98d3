"""Transactions as an operator sees them, which librdkafka cannot ask for: coordinators, partitions, what hangs.

Owns the requests, and which broker each goes to. Must not know any command.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError, no_topic
from lamina.errors import ErrorCode, error_from_code
from lamina.peer.call import MessageCall
from lamina.peer.cluster import ClusterClient
from lamina.peer.target import Broker, Coordinator, CoordinatorType, Leader
from lamina.topic_partition import TopicPartition, by_topic
from lamina.wire.api_keys import DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS, WRITE_TXN_MARKERS

_MARKERS_VERSIONS = range(1, 2)
_FIRST_VERSION = range(1)
_METADATA_SECONDS = 30.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listed:
    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class Described:
    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_ms: int | None
    """``None`` where nothing is open."""
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """What a partition knows of a producer that has a transaction open in it."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp_ms: int


class Transactions:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def _ask(self, work: Callable[[ClusterClient], Awaitable[T]]) -> T:
        return self._cluster.ask(work)

    def listed(self, states: Collection[str] = (), producer_ids: Collection[int] = ()) -> list[Listed]:
        """Of all coordinators. Raises ClientError for a state that does not exist."""
        return self._ask(lambda peers: _listed(peers, states, producer_ids))

    def described(self, transactional_id: str) -> Described:
        return self._ask(lambda peers: _described(peers, transactional_id))

    def partitions(self, topic: str | None = None, partition: int | None = None) -> dict[TopicPartition, int]:
        """The partitions of one topic, or of all, by leader. Raises ClientError for what does not exist."""
        # All are asked for: a broker might make a topic that is asked for by name.
        topics = self._cluster.admin().list_topics(timeout=_METADATA_SECONDS).topics
        if topic is not None and topic not in topics:
            raise no_topic(topic)
        found: dict[TopicPartition, int] = {
            (name, index): one.leader
            for name, described in topics.items()
            if topic in (None, name)
            for index, one in described.partitions.items()
        }
        if partition is not None:
            found = {key: leader for key, leader in found.items() if key[1] == partition}
            if not found:
                raise ClientError(
                    f"{topic} has no partition {partition}; `lamina topics describe` shows its partitions"
                )
        return found

    def open_in(self, partitions: Mapping[TopicPartition, int]) -> list[OpenTransaction]:
        """What is open in these, in the order of their offsets."""
        found = self._ask(lambda peers: _open_in(peers, partitions))
        return sorted(found, key=lambda one: (one.topic, one.partition, one.start_offset))

    def hanging(self, candidates: Iterable[OpenTransaction]) -> list[tuple[OpenTransaction, str | None]]:
        """Those of which no coordinator knows, each with the transactional id that its producer has."""
        open_ones = list(candidates)
        if not open_ones:
            return []
        known, ids = self._ask(lambda peers: _known(peers, {one.producer_id for one in open_ones}))
        hanging = []
        for one in open_ones:
            name = ids.get(one.producer_id)
            described = None if name is None else known.get(name)
            if described is None or (one.topic, one.partition) not in described.partitions:
                hanging.append((one, name))
        return hanging

    def abort(self, hanging: OpenTransaction) -> None:
        marker = {
            "producer_id": hanging.producer_id,
            "producer_epoch": hanging.producer_epoch,
            "transaction_result": False,
            "topics": [{"name": hanging.topic, "partition_indexes": [hanging.partition]}],
            "coordinator_epoch": max(hanging.coordinator_epoch, 0),
        }
        call = MessageCall(WRITE_TXN_MARKERS, _MARKERS_VERSIONS, markers=[marker])
        answer = self._ask(lambda peers: peers.request(Leader(hanging.topic, hanging.partition), call))
        for code in call.errors(answer):
            _check(code, f"{hanging.topic}-{hanging.partition}")


async def _listed(peers: ClusterClient, states: Collection[str], producer_ids: Collection[int]) -> list[Listed]:
    call = MessageCall(LIST_TRANSACTIONS, _FIRST_VERSION, state_filters=states, producer_id_filters=producer_ids)
    brokers = list(await peers.brokers())
    answers = await asyncio.gather(*(peers.request(Broker(broker), call) for broker in brokers))
    found = []
    for broker, answer in zip(brokers, answers, strict=True):
        _check(answer.error_code, f"broker {broker}")
        if answer.unknown_state_filters:
            names = ", ".join(answer.unknown_state_filters)
            raise ClientError(f"there is no transaction state {names}; `lamina transactions list` shows states")
        found += [
            Listed(one.transactional_id, broker, one.producer_id, one.transaction_state)
            for one in answer.transaction_states
        ]
    return sorted(found, key=lambda one: one.transactional_id)


async def _described(peers: ClusterClient, transactional_id: str) -> Described:
    coordinator = Coordinator(CoordinatorType.TRANSACTION, transactional_id)
    call = MessageCall(DESCRIBE_TRANSACTIONS, _FIRST_VERSION, transactional_ids=[transactional_id])
    answer = await peers.request(coordinator, call)
    if len(answer.transaction_states) != 1:
        raise ClientError(f"{transactional_id}: the broker did not answer what it was asked; look at its log")
    (told,) = answer.transaction_states
    if told.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        raise ClientError("there is no such transactional id; `lamina transactions list` shows all of them")
    _check(told.error_code, transactional_id)
    return Described(
        told.transactional_id,
        await peers.coordinator_id(coordinator),
        told.producer_id,
        told.producer_epoch,
        told.transaction_state,
        round(told.transaction_timeout.total_seconds() * 1000),
        _milliseconds(told.transaction_start_time),
        tuple((topic.topic, index) for topic in told.topics for index in topic.partitions),
    )


async def _known(peers: ClusterClient, producer_ids: Collection[int]) -> tuple[dict[str, Described], dict[int, str]]:
    """What coordinators know of producers: transactions by transactional id, and transactional ids by producer id."""
    ids = {one.producer_id: one.transactional_id for one in await _listed(peers, (), producer_ids)}
    known: dict[str, Described] = {}
    for transactional_id in set(ids.values()):
        try:
            known[transactional_id] = await _described(peers, transactional_id)
        except ClientError:
            # It has expired meanwhile: the transaction is unknown.
            continue
    return known, ids


async def _open_in(peers: ClusterClient, partitions: Mapping[TopicPartition, int]) -> list[OpenTransaction]:
    by_leader: dict[int, list[TopicPartition]] = {}
    for key, leader in sorted(partitions.items()):
        by_leader.setdefault(leader, []).append(key)
    found: list[OpenTransaction] = []
    for leader in sorted(by_leader.keys() & (await peers.brokers()).keys()):
        topics = [{"name": name, "partition_indexes": indexes} for name, indexes in by_topic(by_leader[leader]).items()]
        answer = await peers.request(Broker(leader), MessageCall(DESCRIBE_PRODUCERS, _FIRST_VERSION, topics=topics))
        found += [open_one for topic in answer.topics for open_one in _open(topic)]
    return found


def _open(topic: Any) -> list[OpenTransaction]:
    found = []
    for partition in topic.partitions:
        _check(partition.error_code, f"{topic.name}-{partition.partition_index}")
        found += [
            OpenTransaction(
                topic.name,
                partition.partition_index,
                one.producer_id,
                one.producer_epoch,
                one.coordinator_epoch,
                one.current_txn_start_offset,
                one.last_timestamp,
            )
            for one in partition.active_producers
            if one.current_txn_start_offset >= 0
        ]
    return found


def _check(code: int, what: str) -> None:
    if code:
        raise ClientError(str(error_from_code(code, f"{what}: the broker refused")))


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)
