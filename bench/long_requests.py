"""Requests with as many entries as a client may name at once, in an order in which each finds something to do.

Owns what each API is asked, and what has to be there before. Must not know how long anything takes.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bench.subjects import Subject, address
from lamina.broker.requests.api_table import APIS
from lamina.records.record import Record, build_batch
from lamina.wire.codec import encode_request, parse_response
from lamina.wire.versions import request_schema
from tests.broker.in_process import CONSUMER, build

Facts = Mapping[str, Any]

GROUP, TRANSACTIONAL_ID = "group", "id"
WRITTEN = 0.4
"""The share of partitions that are written to: each has three open files then, and a process may have 20,000."""
LATEST, SOME_TIME_MS = -1, 1
TOPIC, BROKER = 2, 4
NEVER_MS, SHORTLY_MS = 0, 500

PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH = 0, 1, 2, 3, 8, 9
FIND_COORDINATOR, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP, DESCRIBE_GROUPS, LIST_GROUPS = 10, 11, 13, 14, 15, 16
CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, INIT_PRODUCER_ID = 19, 20, 21, 22
OFFSET_FOR_LEADER_EPOCH, ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN = 23, 24, 25, 26
WRITE_TXN_MARKERS, TXN_OFFSET_COMMIT, CREATE_ACLS, DELETE_ACLS = 27, 28, 30, 31
DESCRIBE_CONFIGS, ALTER_CONFIGS, ALTER_REPLICA_LOG_DIRS, DESCRIBE_LOG_DIRS = 32, 33, 34, 35
CREATE_PARTITIONS, DELETE_GROUPS, ELECT_LEADERS, INCREMENTAL_ALTER_CONFIGS = 37, 42, 43, 44
ALTER_PARTITION_REASSIGNMENTS, LIST_PARTITION_REASSIGNMENTS, OFFSET_DELETE = 45, 46, 47
DESCRIBE_CLIENT_QUOTAS, ALTER_CLIENT_QUOTAS = 48, 49
DESCRIBE_USER_SCRAM_CREDENTIALS, ALTER_USER_SCRAM_CREDENTIALS = 50, 51
UPDATE_FEATURES, DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 57, 61, 65, 66
CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE, LIST_CONFIG_RESOURCES, DESCRIBE_TOPIC_PARTITIONS = 68, 69, 74, 75

_ANSWER_SECONDS = 300
_PIPELINED = 100
"""As many requests are on their way at once where there are many small ones."""
_NAMES = {api.key: api.name for api in APIS}
_NEWEST = {api.key: api.versions[-1] for api in APIS}


class Asks(Protocol):
    """Whoever brings requests to a broker."""

    def ask(self, api_key: int, facts: Facts, version: int | None = None) -> Any:
        """The answer."""

    def send(self, api_key: int, asked: Iterable[Facts], version: int | None = None) -> object:
        """Several; the answers have come, and nobody reads them."""


class Client:
    """One connection."""

    def __init__(self, subject: Subject) -> None:
        self._socket = socket.create_connection(address(subject), timeout=_ANSWER_SECONDS)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, api_key: int, facts: Facts, version: int | None = None) -> Any:
        """The answer."""
        (frame,) = self.send(api_key, [facts], version)
        return parse_response(api_key, _NEWEST[api_key] if version is None else version, frame)[1]

    def send(self, api_key: int, asked: Iterable[Facts], version: int | None = None) -> list[bytes]:
        """Several at a time, each with its answer, unread; in the newest version unless another is given.

        What that does not carry is left out.
        """
        schema = request_schema(api_key, _NEWEST[api_key] if version is None else version)
        frames = [encode_request(build(schema, CONSUMER | dict(facts)), 1, "bench") for facts in asked]
        answers = []
        for start in range(0, len(frames), _PIPELINED):
            some = frames[start : start + _PIPELINED]
            self._socket.sendall(b"".join(some))
            answers += [self._receive_frame() for _ in some]
        return answers

    def _receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive(4))
        return self._receive(size)

    def _receive(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            part = self._socket.recv(count - len(received))
            if not part:
                raise ConnectionError("the broker hung up")
            received += part
        return bytes(received)


@dataclass(frozen=True, slots=True)
class LongRequest:
    api_key: int
    facts: Facts
    of: str = ""
    """What its entries are, where an API has several rows."""
    version: int | None = None
    """The newest unless given."""
    times: int = 3
    """What changes something is sent once."""

    @property
    def name(self) -> str:
        return f"{_NAMES[self.api_key]}{', ' if self.of else ''}{self.of}"


class LongRequests:
    """What there is to name, and requests that name all of it."""

    def __init__(self, client: Asks, entries: int, *, is_one_topic: bool) -> None:
        """The entries are partitions of one topic, or topics with a partition each."""
        self._client = client
        self._entries = entries
        self._topics = ["wide"] if is_one_topic else [f"topic-{number}" for number in range(entries)]
        self._indexes = range(entries if is_one_topic else 1)
        self._absent = [f"no-{number}" for number in range(entries)]
        self._groups = [f"group-{number}" for number in range(entries)]
        self._ids = [f"id-{number}" for number in range(entries)]

    def rows(self) -> Iterator[LongRequest]:
        """Those that only look, and then those that write, at topics made anew."""
        yield from self._creating()
        for max_wait_ms, name in ((NEVER_MS, "empty"), (SHORTLY_MS, "empty, waiting")):
            yield self._fetch(name, self._each("partition"), max_wait_ms)
        yield self._fetch("empty, a new session", self._each("partition"), session_epoch=0)
        yield from self._reading()
        yield from self._configs()
        yield from self._offsets()
        yield from self._members()
        yield from self._deciding()
        yield from self._more_partitions()
        yield LongRequest(DELETE_TOPICS, {"topics": [{"name": name} for name in self._topics]}, "empty", times=1)
        yield from self._writing()

    def _writing(self) -> Iterator[LongRequest]:
        self._client.send(CREATE_TOPICS, [{"topics": self._new_topics()}])
        data = [
            {"name": one["name"], "partition_data": one["partitions"]}
            for one in self._each("index", WRITTEN, records=_batch())
        ]
        yield LongRequest(PRODUCE, {"acks": 1, "timeout": 60_000, "topic_data": data}, _SOME, 12)
        yield self._fetch("", self._each("partition"))
        yield self._fetch("a new session", self._each("partition"), session_epoch=0)
        for of, at in (("latest", LATEST), ("by time", SOME_TIME_MS)):
            asked = self._each("partition_index", timestamp=at, current_leader_epoch=-1)
            yield LongRequest(LIST_OFFSETS, {"topics": asked}, of)
        yield LongRequest(DESCRIBE_PRODUCERS, {"topics": self._plain("partition_indexes")})
        yield from self._transactions()
        records = self._each("partition_index", WRITTEN, offset=1)
        yield LongRequest(DELETE_RECORDS, {"topics": records, "timeout": 60_000}, _SOME, times=1)
        yield LongRequest(DELETE_TOPICS, {"topics": [{"name": name} for name in self._topics]}, times=1)
        # For the stop.
        self._client.send(CREATE_TOPICS, [{"topics": self._new_topics()}])

    def rows_without_topics(self) -> Iterator[LongRequest]:
        """Whose entries are something else than topics and partitions."""
        yield self._fetch("topics that are not there", self._nowhere("partition"))
        yield self._fetch("topics that are not there, a new session", self._nowhere("partition"), session_epoch=0)
        yield LongRequest(METADATA, {"topics": [{"name": name} for name in self._absent]}, "topics that are not there")
        yield from self._absent_configs()
        yield from self._many_groups()
        yield from self._many_ids()
        moved = [{"path": f"/none/{name}", "topics": [{"name": name, "partitions": [0]}]} for name in self._absent]
        yield LongRequest(ALTER_REPLICA_LOG_DIRS, {"dirs": moved}, "directories")
        yield LongRequest(UPDATE_FEATURES, {"feature_updates": [{"feature": name} for name in self._absent]})
        acl = {"resource_type": TOPIC, "principal": "User:a", "host": "*", "operation": 2, "permission_type": 3}
        yield LongRequest(CREATE_ACLS, {"creations": [{**acl, "resource_name": name} for name in self._absent]})
        yield LongRequest(DELETE_ACLS, {"filters": [{"resource_name_filter": name} for name in self._absent]})
        users = [{"name": name} for name in self._absent]
        yield LongRequest(DESCRIBE_USER_SCRAM_CREDENTIALS, {"users": users})
        deletions = [{"name": name, "mechanism": 1} for name in self._absent]
        yield LongRequest(ALTER_USER_SCRAM_CREDENTIALS, {"deletions": deletions})
        entities = [[{"entity_type": "user", "entity_name": name}] for name in self._absent]
        quota = [{"key": "producer_byte_rate", "value": 1.0, "remove": False}]
        altered = [{"entity": entity, "ops": quota} for entity in entities]
        yield LongRequest(ALTER_CLIENT_QUOTAS, {"entries": altered, "validate_only": True})
        yield LongRequest(DESCRIBE_CLIENT_QUOTAS, {"components": [{"entity_type": "user", "match_type": 2}]})
        deleted = [{"name": name} for name in self._absent]
        yield LongRequest(DELETE_TOPICS, {"topics": deleted}, "topics that are not there")

    # Topics and partitions

    def _new_topics(self) -> list[Facts]:
        count = len(self._indexes)
        return [{"name": name, "num_partitions": count, "replication_factor": 1} for name in self._topics]

    def _creating(self) -> Iterator[LongRequest]:
        topics = self._new_topics()
        by_hand = [{"partition_index": index, "broker_ids": [1]} for index in self._indexes]
        assigned = {"num_partitions": -1, "replication_factor": -1, "assignments": by_hand}
        configs = [{"name": f"no.{number}", "value": ""} for number in range(self._entries // len(self._topics))]
        yield LongRequest(CREATE_TOPICS, {"topics": topics, "validate_only": True}, "validated")
        for of, more in (("assignments, validated", assigned), ("configs, validated", {"configs": configs})):
            yield LongRequest(CREATE_TOPICS, {"topics": [{**one, **more} for one in topics], "validate_only": True}, of)
        yield LongRequest(CREATE_TOPICS, {"topics": topics}, times=1)
        yield LongRequest(CREATE_TOPICS, {"topics": topics}, "again")

    def _reading(self) -> Iterator[LongRequest]:
        asked = self._each("partition", current_leader_epoch=-1, leader_epoch=0)
        topics = [{"topic": one["name"], **one} for one in asked]
        yield LongRequest(OFFSET_FOR_LEADER_EPOCH, {"topics": topics})
        yield from self._describing()

    def _describing(self) -> Iterator[LongRequest]:
        topics = [{"name": name} for name in self._topics]
        yield LongRequest(METADATA, {"topics": None}, "all")
        yield LongRequest(METADATA, {"topics": topics}, "named")
        for of, named in (("all", []), ("named", topics)):
            yield LongRequest(DESCRIBE_TOPIC_PARTITIONS, {"response_partition_limit": 1 << 30, "topics": named}, of)
        partitions = self._plain("partitions")
        yield LongRequest(DESCRIBE_LOG_DIRS, {"topics": None}, "all")
        yield LongRequest(DESCRIBE_LOG_DIRS, {"topics": [{"topic": one["name"], **one} for one in partitions]}, "named")
        yield LongRequest(ALTER_REPLICA_LOG_DIRS, {"dirs": [{"path": "/none", "topics": partitions}]})
        for of, listed in (("all", None), ("named", self._plain("partition_indexes"))):
            yield LongRequest(LIST_PARTITION_REASSIGNMENTS, {"topics": listed}, of)

    def _configs(self) -> Iterator[LongRequest]:
        yield LongRequest(LIST_CONFIG_RESOURCES, {"resource_types": []})
        one_of_each = [f"no.{number}" for number in range(self._entries // len(self._topics))]
        for of, keys in (("all keys", None), ("one key of each", ["retention.ms"]), ("unknown keys", one_of_each)):
            yield LongRequest(DESCRIBE_CONFIGS, {"resources": self._resources(configuration_keys=keys)}, of)
        documented = {"include_synonyms": True, "include_documentation": True}
        resources = self._resources(configuration_keys=None)
        yield LongRequest(DESCRIBE_CONFIGS, documented | {"resources": resources}, "documented", times=1)
        good, bad = _config("retention.ms", "86400000"), _config("retention.ms", "x")
        several = self._entries // len(self._topics)
        for api_key in (ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS):
            for of, configs in (
                ("validated", [good]),
                ("bad values, validated", [bad]),
                ("unknown names, validated", [_config(f"no.{number}", "") for number in range(several)]),
                ("one name, validated", [good] * several),
            ):
                yield LongRequest(api_key, {"resources": self._resources(configs=configs), "validate_only": True}, of)
            yield LongRequest(api_key, {"resources": self._resources(configs=[good])}, times=1)

    def _deciding(self) -> Iterator[LongRequest]:
        for of, named in (
            ("all", None),
            ("named", [{"topic": one["name"], **one} for one in self._plain("partitions")]),
        ):
            yield LongRequest(ELECT_LEADERS, {"topic_partitions": named, "election_type": 0}, of)
        for of, broker in (("where they are", 1), ("to a broker that is not there", 7)):
            moved = self._each("partition_index", replicas=[broker])
            yield LongRequest(ALTER_PARTITION_REASSIGNMENTS, {"topics": moved}, of)

    def _more_partitions(self) -> Iterator[LongRequest]:
        # Each has an open file: there are descriptors for half as many more.
        count = len(self._indexes)
        more: list[Facts] = [{"name": name, "count": count + max(count // 2, 1)} for name in self._topics]
        some = more[: (len(more) + 1) // 2]
        by_hand = [{**one, "assignments": [{"broker_ids": [1]}] * (one["count"] - count)} for one in more]
        fewer = [{"name": name, "count": count} for name in self._topics]
        for of, topics in (("validated", more), ("assignments, validated", by_hand), ("no increase, validated", fewer)):
            yield LongRequest(CREATE_PARTITIONS, {"topics": topics, "validate_only": True}, of)
        yield LongRequest(CREATE_PARTITIONS, {"topics": some}, "half as many", times=1)

    # Groups and transactions

    def _offsets(self) -> Iterator[LongRequest]:
        self._find_coordinator()
        committed = self._each("partition_index", committed_offset=1, committed_leader_epoch=-1)
        yield LongRequest(OFFSET_COMMIT, {**_COMMITTING, "group_id": GROUP, "topics": committed}, "", 9)
        for of, named in (("all", None), ("named", self._plain("partition_indexes"))):
            yield LongRequest(OFFSET_FETCH, {"groups": [{"group_id": GROUP, "topics": named}]}, of, 9)
        deleted = {"group_id": GROUP, "topics": self._each("partition_index")}
        yield LongRequest(OFFSET_DELETE, deleted, times=1)

    def _members(self) -> Iterator[LongRequest]:
        """One member that reads everything."""
        heartbeat = {"group_id": "consumer", "member_id": "m", "rebalance_timeout": 30_000}
        joining = heartbeat | {"member_epoch": 0, "subscribed_topic_names": self._topics, "topic_partitions": []}
        yield LongRequest(CONSUMER_GROUP_HEARTBEAT, joining, "joining", times=1)
        ids = {topic.name: topic.topic_id for topic in self._client.ask(METADATA, {"topics": None}).topics}
        owned = [{"topic_id": ids[name], "partitions": self._indexes} for name in self._topics]
        assigned = heartbeat | {"member_epoch": 1, "topic_partitions": owned, "subscribed_topic_names": None}
        yield LongRequest(CONSUMER_GROUP_HEARTBEAT, assigned, "owned")
        yield LongRequest(CONSUMER_GROUP_DESCRIBE, {"group_ids": ["consumer"]}, "assigned")

    def _many_groups(self) -> Iterator[LongRequest]:
        self._find_coordinator()
        topics = [
            {"name": "few", "partitions": [{"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1}]}
        ]
        self._client.ask(CREATE_TOPICS, {"topics": [{"name": "few", "num_partitions": 1, "replication_factor": 1}]})
        self._client.send(
            OFFSET_COMMIT, [{**_COMMITTING, "group_id": name, "topics": topics} for name in self._groups], 9
        )
        for kind, of in ((0, "groups"), (1, "transactions")):
            yield LongRequest(FIND_COORDINATOR, {"key_type": kind, "coordinator_keys": self._groups}, of)
        for of, groups in (("", self._groups), ("groups that are not there", self._absent)):
            every = [{"group_id": name, "topics": None} for name in groups]
            yield LongRequest(OFFSET_FETCH, {"groups": every}, of or "groups", 9)
            yield LongRequest(DESCRIBE_GROUPS, {"groups": groups}, of)
            yield LongRequest(CONSUMER_GROUP_DESCRIBE, {"group_ids": groups}, of)
        yield LongRequest(LIST_GROUPS, {})
        yield from self._classic_group()
        yield LongRequest(DELETE_GROUPS, {"groups_names": self._absent}, "groups that are not there")
        yield LongRequest(DELETE_GROUPS, {"groups_names": self._groups}, times=1)

    def _classic_group(self) -> Iterator[LongRequest]:
        protocols = [{"name": name, "metadata": b""} for name in self._absent]
        timeouts = {"session_timeout": 30_000, "rebalance_timeout": 500}
        joining = {"group_id": "classic", "protocol_type": "consumer", "protocols": protocols, **timeouts}
        yield LongRequest(JOIN_GROUP, joining, "protocols", 3, times=1)
        joined = self._client.ask(JOIN_GROUP, {**joining, "group_id": "other"}, 3)
        member = {"group_id": "other", "generation_id": joined.generation_id, "member_id": joined.member_id}
        assigned = [{"member_id": name, "assignment": b""} for name in self._absent]
        yield LongRequest(SYNC_GROUP, member | {"assignments": assigned})
        leaving = {"group_id": "other", "members": [{"member_id": name} for name in self._absent]}
        yield LongRequest(LEAVE_GROUP, leaving)

    def _transactions(self) -> Iterator[LongRequest]:
        """One that has everything in it, from its begin to its end."""
        starting = {**_STARTING, "transactional_id": TRANSACTIONAL_ID}
        self._client.ask(FIND_COORDINATOR, {"key_type": 1, "coordinator_keys": [TRANSACTIONAL_ID]})
        while (begun := self._client.ask(INIT_PRODUCER_ID, starting)).error_code:
            pass
        producer = {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
        id_and_producer = {"transactional_id": TRANSACTIONAL_ID, **producer}
        in_v3 = {f"v3_and_below_{name}": fact for name, fact in id_and_producer.items()}
        adding = in_v3 | {"v3_and_below_topics": self._plain("partitions", WRITTEN)}
        yield LongRequest(ADD_PARTITIONS_TO_TXN, adding, _SOME, 3, times=1)
        yield LongRequest(ADD_PARTITIONS_TO_TXN, adding, f"{_SOME} again", 3)
        with_group = {**id_and_producer, "group_id": GROUP}
        self._client.ask(ADD_OFFSETS_TO_TXN, with_group)
        committed = self._each("partition_index", committed_offset=1, committed_leader_epoch=-1)
        committing = {**with_group, "generation_id": -1, "topics": committed}
        yield LongRequest(TXN_OFFSET_COMMIT, committing, "", 3, times=1)
        yield LongRequest(DESCRIBE_TRANSACTIONS, {"transactional_ids": [TRANSACTIONAL_ID]}, "partitions")
        yield LongRequest(END_TXN, {**id_and_producer, "committed": True}, _SOME, 4, times=1)
        # The markers are written meanwhile.
        yield LongRequest(LIST_TRANSACTIONS, {"duration_filter": -1}, "while markers are written")
        marker = {**_MARKER, "producer_id": 1 << 40, "topics": self._plain("partition_indexes", WRITTEN)}
        yield LongRequest(WRITE_TXN_MARKERS, {"markers": [marker]}, _SOME, times=1)

    def _many_ids(self) -> Iterator[LongRequest]:
        self._client.send(INIT_PRODUCER_ID, [{**_STARTING, "transactional_id": name} for name in self._ids])
        topics = [{"name": "few", "partitions": [0]}]
        asked = [{"transactional_id": name, "verify_only": True, "topics": topics} for name in self._ids]
        yield LongRequest(ADD_PARTITIONS_TO_TXN, {"transactions": asked}, "transactions", 5)
        yield LongRequest(DESCRIBE_TRANSACTIONS, {"transactional_ids": self._ids}, "ids")
        yield LongRequest(LIST_TRANSACTIONS, {"duration_filter": -1}, "ids")
        topics = [{"name": "few", "partition_indexes": [0]}]
        markers = [{**_MARKER, "producer_id": (1 << 41) + number, "topics": topics} for number in range(self._entries)]
        yield LongRequest(WRITE_TXN_MARKERS, {"markers": markers}, "producers", times=1)
        yield LongRequest(DESCRIBE_PRODUCERS, {"topics": topics}, "producers")

    def _absent_configs(self) -> Iterator[LongRequest]:
        config = _config("retention.ms", "86400000")
        topics = [{"resource_type": TOPIC, "resource_name": name} for name in self._absent]
        described = [{**one, "configuration_keys": None} for one in topics]
        yield LongRequest(DESCRIBE_CONFIGS, {"resources": described}, "topics that are not there")
        yield LongRequest(LIST_CONFIG_RESOURCES, {"resource_types": [1] * self._entries}, "types")
        changed = [{**one, "configs": [config]} for one in topics]
        yield LongRequest(INCREMENTAL_ALTER_CONFIGS, {"resources": changed}, "topics that are not there")
        groups = [
            {"resource_type": 32, "resource_name": name, "configs": [_config("consumer.session.timeout.ms", "50000")]}
            for name in self._absent
        ]
        yield LongRequest(INCREMENTAL_ALTER_CONFIGS, {"resources": groups}, "groups", times=1)
        levels = {
            "resource_type": 8,
            "resource_name": "1",
            "configs": [_config(f"lamina.{name}", "INFO") for name in self._absent],
        }
        yield LongRequest(INCREMENTAL_ALTER_CONFIGS, {"resources": [levels]}, "loggers")

    # What many requests name

    def _each(self, index_name: str, share: float = 1, **facts: Any) -> list[Facts]:
        """Topics with their partitions, of each of which something is said."""
        topics, indexes = self._share(share)
        partitions = [{index_name: index, **facts} for index in indexes]
        return [{"name": name, "partitions": partitions} for name in topics]

    def _plain(self, indexes_name: str, share: float = 1) -> list[Facts]:
        topics, indexes = self._share(share)
        return [{"name": name, indexes_name: indexes} for name in topics]

    def _share(self, share: float) -> tuple[Sequence[str], range]:
        """All topics and the indexes of each, or so much of them that this share of all partitions is named."""
        count = int(share * self._entries)
        return (self._topics, range(count)) if len(self._topics) == 1 else (self._topics[:count], self._indexes)

    def _nowhere(self, index_name: str) -> list[Facts]:
        return [{"name": name, "partitions": [{index_name: 0}]} for name in self._absent]

    def _resources(self, **facts: Any) -> list[Facts]:
        return [{"resource_type": TOPIC, "resource_name": name, **facts} for name in self._topics]

    def _fetch(
        self, of: str, topics: Iterable[Facts], max_wait_ms: int = NEVER_MS, session_epoch: int = -1
    ) -> LongRequest:
        asked = {"current_leader_epoch": -1, "last_fetched_epoch": -1, "partition_max_bytes": 1000}
        named = [
            {"topic": one["name"], "partitions": [{**asked, **partition} for partition in one["partitions"]]}
            for one in topics
        ]
        facts = {"max_wait": max_wait_ms, "min_bytes": 1, "max_bytes": 1 << 26, "session_epoch": session_epoch}
        return LongRequest(FETCH, facts | {"topics": named}, of, 12)

    def _find_coordinator(self) -> None:
        """It may load yet."""
        self._client.ask(FIND_COORDINATOR, {"key_type": 0, "coordinator_keys": [GROUP]})
        asked = {"groups": [{"group_id": GROUP, "topics": None}]}
        while self._client.ask(OFFSET_FETCH, asked, 9).groups[0].error_code:
            pass


_SOME = f"{WRITTEN:.0%} of them"
_COMMITTING: Facts = {"generation_id_or_member_epoch": -1}
_STARTING: Facts = {"transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1}
_MARKER: Facts = {"producer_epoch": 0, "transaction_result": False, "coordinator_epoch": 0}


def _config(name: str, value: str) -> Facts:
    """The operation is looked at by IncrementalAlterConfigs alone: it is to set."""
    return {"name": name, "value": value, "config_operation": 0}


def _batch() -> bytes:
    return bytes(build_batch([Record(0, 1_700_000_000_000, b"key", b"value")]))
