"""Transactions as an operator sees them, which librdkafka cannot ask for: coordinators, partitions, what hangs.

Owns the requests, and which broker each goes to. Must not know any command.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lamina.client.cluster import Cluster
from lamina.client.errors import ClientError
from lamina.client.own_connection import ask
from lamina.errors import ErrorCode
from lamina.wire.versions import nested_schema, request_schema

_FIND_COORDINATOR, _WRITE_TXN_MARKERS, _DESCRIBE_PRODUCERS = 10, 27, 61
_DESCRIBE_TRANSACTIONS, _LIST_TRANSACTIONS = 65, 66
_FIND_VERSION, _MARKERS_VERSION, _PRODUCERS_VERSION, _DESCRIBE_VERSION, _LIST_VERSION = 4, 1, 0, 0, 0
_TRANSACTION_KEY = 1
_METADATA_SECONDS = 30.0

TopicPartition = tuple[str, int]


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
        self._brokers = cluster.plain_addresses("transactions")
        self._cluster = cluster

    def listed(self, states: Collection[str] = (), producer_ids: Collection[int] = ()) -> list[Listed]:
        """Of all coordinators. Raises ClientError for a state that does not exist."""
        request = _request(
            _LIST_TRANSACTIONS, _LIST_VERSION, state_filters=tuple(states), producer_id_filters=tuple(producer_ids)
        )
        found = []
        for broker, address in self._brokers.items():
            answer = ask(address, request)
            _check(answer.error_code, f"broker {broker}")
            if answer.unknown_state_filters:
                names = ", ".join(answer.unknown_state_filters)
                raise ClientError(f"no transaction is ever in state {names}; `lamina transactions list` shows states")
            found += [
                Listed(one.transactional_id, broker, one.producer_id, one.transaction_state)
                for one in answer.transaction_states
            ]
        return sorted(found, key=lambda one: one.transactional_id)

    def described(self, transactional_id: str) -> Described:
        coordinator = self._coordinator(transactional_id)
        request = _request(_DESCRIBE_TRANSACTIONS, _DESCRIBE_VERSION, transactional_ids=(transactional_id,))
        (told,) = ask(self._brokers[coordinator], request).transaction_states
        if told.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise ClientError("there is no such transactional id; `lamina transactions list` shows what is there")
        _check(told.error_code, transactional_id)
        return Described(
            told.transactional_id,
            coordinator,
            told.producer_id,
            told.producer_epoch,
            told.transaction_state,
            round(told.transaction_timeout.total_seconds() * 1000),
            _milliseconds(told.transaction_start_time),
            tuple((topic.topic, index) for topic in told.topics for index in topic.partitions),
        )

    def _coordinator(self, transactional_id: str) -> int:
        request = _request(
            _FIND_COORDINATOR, _FIND_VERSION, key_type=_TRANSACTION_KEY, coordinator_keys=(transactional_id,)
        )
        (found,) = ask(next(iter(self._brokers.values())), request).coordinators
        _check(found.error_code, transactional_id)
        if found.node_id not in self._brokers:
            raise ClientError(f"its coordinator, broker {found.node_id}, is not there; try again in a moment")
        return int(found.node_id)

    def partitions(self, topic: str | None = None, partition: int | None = None) -> dict[TopicPartition, int]:
        """The partitions of one topic, or of all, by leader. Raises ClientError for what does not exist."""
        # All are asked for: a broker might make a topic that is asked for by name.
        topics = self._cluster.admin().list_topics(timeout=_METADATA_SECONDS).topics
        if topic is not None and topic not in topics:
            raise ClientError(f"there is no topic {topic}; `lamina topics list` shows what is there")
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
        found: list[OpenTransaction] = []
        schema = request_schema(_DESCRIBE_PRODUCERS, _PRODUCERS_VERSION)
        topic_schema = nested_schema(schema, "topics")
        for leader in sorted(set(partitions.values())):
            address = self._brokers.get(leader)
            if address is None:
                continue
            wanted: dict[str, list[int]] = {}
            for (topic, index), of in sorted(partitions.items()):
                if of == leader:
                    wanted.setdefault(topic, []).append(index)
            topics = tuple(topic_schema(name=name, partition_indexes=tuple(of)) for name, of in wanted.items())
            answer = ask(address, _request(_DESCRIBE_PRODUCERS, _PRODUCERS_VERSION, topics=topics))
            found += [open_one for topic in answer.topics for open_one in _open(topic)]
        return sorted(found, key=lambda one: (one.topic, one.partition, one.start_offset))

    def hanging(self, candidates: Iterable[OpenTransaction]) -> list[tuple[OpenTransaction, str | None]]:
        """Those of which no coordinator knows, each with the transactional id that its producer has."""
        open_ones = list(candidates)
        if not open_ones:
            return []
        ids: dict[int, str] = {
            one.producer_id: one.transactional_id
            for one in self.listed(producer_ids={one.producer_id for one in open_ones})
        }
        known: dict[str, Described] = {}
        for transactional_id in set(ids.values()):
            try:
                known[transactional_id] = self.described(transactional_id)
            except ClientError:
                # It has expired meanwhile: nobody knows of the transaction.
                continue
        hanging = []
        for one in open_ones:
            name = ids.get(one.producer_id)
            described = None if name is None else known.get(name)
            if described is None or (one.topic, one.partition) not in described.partitions:
                hanging.append((one, name))
        return hanging

    def abort(self, hanging: OpenTransaction) -> None:
        leader = self.partitions(hanging.topic, hanging.partition)[hanging.topic, hanging.partition]
        address = self._brokers.get(leader)
        if address is None:
            raise ClientError(f"{hanging.topic}-{hanging.partition} has no leader now; try again in a moment")
        marker_schema = nested_schema(request_schema(_WRITE_TXN_MARKERS, _MARKERS_VERSION), "markers")
        topic_schema = nested_schema(marker_schema, "topics")
        marker = marker_schema(
            producer_id=hanging.producer_id,
            producer_epoch=hanging.producer_epoch,
            transaction_result=False,
            topics=(topic_schema(name=hanging.topic, partition_indexes=(hanging.partition,)),),
            coordinator_epoch=max(hanging.coordinator_epoch, 0),
        )
        answer = ask(address, _request(_WRITE_TXN_MARKERS, _MARKERS_VERSION, markers=(marker,)))
        _check(answer.markers[0].topics[0].partitions[0].error_code, f"{hanging.topic}-{hanging.partition}")


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


def _request(api_key: int, version: int, **fields: Any) -> Any:
    schema: Any = request_schema(api_key, version)
    return schema(**fields)


def _check(code: int, what: str) -> None:
    if code:
        name = code.name if isinstance(code, ErrorCode) else f"error {int(code)}"
        raise ClientError(f"{what}: the broker answered {name.upper()}")


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)
