"""The topic in which the states of all queries are kept, the newest under each query's name.

Owns the topic's settings and how a state is found and added. It has one partition, so that nothing can move a query to
another; a state is near its end as long as the query lives, so it is looked for from the end backwards. Whoever writes
has a producer whose epoch was raised before it read: whoever had it earlier cannot write any more, once the new one has
written something (`take_over`). A log compares epochs of one producer id alone, and a coordinator gives a new id when
the epochs of one are used up, every 32,766 batches, or when it has forgotten the id: so the one before is used up in
the log, too (`shut_out`). Both hold for as long as the brokers keep an idle producer in mind, a day unless
``producer.id.expiration.ms`` says otherwise: a driver that was stopped for longer than that between its reading and
its writing is refused only if its id is still in use. And it is where a producer in one epoch is given to one of
several that want it: a partition takes the first batch of an epoch once, and tells all who send one after where that
one is (`claim`). Must not know what a state means.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from lamina.errors import (
    DuplicateSequence,
    ErrorCode,
    InvalidProducerEpoch,
    OffsetNotAvailable,
    OutOfOrderSequence,
    ProducerFenced,
    error_from_code,
)
from lamina.peer.call import MessageCall
from lamina.peer.cluster import ClusterClient
from lamina.peer.listing import EARLIEST, LATEST
from lamina.peer.producing import Produced
from lamina.peer.routes import metadata_call
from lamina.peer.target import AnyBroker, Controller
from lamina.peer.transacting import Producer
from lamina.producing.errors import WriteError
from lamina.records.batch import Codec, walk
from lamina.records.record import Record, build_batch, iterate_records
from lamina.wire.api_keys import CREATE_TOPICS, DESCRIBE_CONFIGS

_CREATE_VERSIONS: Final = range(2, 8)
_CREATE_TIMEOUT_MS: Final = 30_000
_DESCRIBE_VERSIONS: Final = range(1, 5)
_TOPIC: Final = 2
_POLICY: Final = "cleanup.policy"
_MOST_BYTES: Final = "max.message.bytes"
_LEAST_LIMIT_BYTES: Final = 1_000_000
"""The default of ``max.message.bytes`` is a little more; nobody is asked about less."""
_CONFIGS: Final = {
    _POLICY: "compact",
    "segment.bytes": str(8 * 1024 * 1024),
    "segment.ms": str(60 * 60 * 1000),
    "min.cleanable.dirty.ratio": "0.1",
    _MOST_BYTES: str(32 * 1024 * 1024),
}
_REPLICAS: Final = 3
"""Where there are as many brokers. Their default is made for no topic in particular, and is 1 in Kafka."""
_CONFIGS_IF_REPLICATED: Final = {"min.insync.replicas": "2"}
_FIRST_STEP: Final = 256
"""Offsets: so far from the end the first search begins; each further one begins sixteen times as far."""
_FETCH_BYTES: Final = 1024 * 1024
_EMPTY_FETCHES: Final = 60
"""In a row. A broker holds each of them back for half a second, unless something comes."""
_RECORDS_LIMIT_BYTES: Final = 64 * 1024 * 1024
_PARTITION: Final = 0
_DRIVER_SUFFIX: Final = "/driver"
_LAST_EPOCH: Final = 2**15 - 1
"""Coordinators do not give it to anybody."""
_CLAIM_PREFIX: Final = "claim/"
"""No query's name has a slash in it."""


logger = logging.getLogger(__name__)


class DecisionTopic:
    def __init__(self, cluster: ClusterClient, name: str) -> None:
        self._cluster = cluster
        self.name = name

    async def ensure(self) -> None:
        """Make it if it is not there."""
        response = await self._cluster.request(AnyBroker(), metadata_call([self.name]))
        (told,) = response.topics
        if told.error_code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
            return
        if told.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise error_from_code(told.error_code, f"the decision topic {self.name}")
        replicas = min(_REPLICAS, len(response.brokers))
        configs = _CONFIGS | (_CONFIGS_IF_REPLICATED if replicas == _REPLICAS else {})
        topic = {
            "name": self.name,
            "num_partitions": 1,
            "replication_factor": replicas,
            "assignments": [],
            "configs": [{"name": name, "value": value} for name, value in configs.items()],
        }
        call = MessageCall(
            CREATE_TOPICS, _CREATE_VERSIONS, topics=[topic], timeout=_CREATE_TIMEOUT_MS, validate_only=False
        )
        (created,) = (await self._cluster.request(Controller(), call)).topics
        if created.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise error_from_code(created.error_code, f"the decision topic {self.name} cannot be created")

    async def refuse_forgetting(self) -> None:
        """Raises `WriteError` where it is seen that decisions would be deleted for their age.

        Somebody else may have made the topic, or a broker by itself, because it was asked for.
        """
        policy = await self._config(_POLICY)
        if policy not in (None, _CONFIGS[_POLICY]):
            raise WriteError(
                f"topic {self.name} forgets decisions, because its {_POLICY} is {policy}: set it to "
                f"{_CONFIGS[_POLICY]}, or name another topic by the option decisionTopic"
            )

    async def refuse_more_than_fits(self, size_bytes: int, what: str) -> None:
        """Raises `WriteError` where it is seen that a record of that size would be refused. ``what`` is its content."""
        if size_bytes <= _LEAST_LIMIT_BYTES:
            return
        limit = await self._config(_MOST_BYTES)
        if limit is not None and size_bytes > int(limit):
            raise WriteError(
                f"topic {self.name} may not hold a decision on {what}, because its {_MOST_BYTES} is {limit}: set it to "
                f"{size_bytes} or more, or write in fewer tasks (coalesce)"
            )

    async def _config(self, name: str) -> str | None:
        """Of this topic; ``None`` where it may not be seen."""
        asked = {"resource_type": _TOPIC, "resource_name": self.name, "configuration_keys": [name]}
        call = MessageCall(
            DESCRIBE_CONFIGS,
            _DESCRIBE_VERSIONS,
            resources=[asked],
            include_synonyms=False,
            include_documentation=False,
        )
        (told,) = (await self._cluster.request(AnyBroker(), call)).results
        return next((one.value for one in told.configs if one.name == name), None)

    async def warn_if_less_durable(self, topic: str) -> None:
        """Than the rows of a topic: where decisions are lost, batches are written again."""
        response = await self._cluster.request(AnyBroker(), metadata_call([self.name, topic]))
        replicas = {
            one.name: min((len(of.replica_nodes) for of in one.partitions), default=0) for one in response.topics
        }
        mine, theirs = replicas[self.name], replicas[topic]
        if 0 < mine < theirs:
            logger.warning(
                "topic %s has fewer replicas (%d) than topic %s (%d), whose rows it decides: if it is lost, batches "
                "are written twice. Give it as many, and set its min.insync.replicas to 2",
                self.name,
                mine,
                topic,
                theirs,
            )

    # Reading

    async def find(self, query: str) -> bytes | None:
        """The newest state of a query."""
        end = (await self._cluster.list_offset(self.name, _PARTITION, LATEST)).offset
        start = (await self._cluster.list_offset(self.name, _PARTITION, EARLIEST)).offset
        step = _FIRST_STEP
        key = query.encode()
        while end > start:
            begin = max(start, end - step)
            found = await self._last_value(key, begin, end)
            if found is not None:
                return found
            end, step = begin, step * 16
        return None

    async def _last_value(self, key: bytes, begin: int, end: int) -> bytes | None:
        found = None
        async for record in self._records(begin, end):
            if record.key == key:
                found = record.value
        return found

    async def _records(self, begin: int, end: int) -> AsyncIterator[Record]:
        """All of them, or an error: whoever misses a state takes an older one for the newest.

        A leader that is new gives nothing from its high watermark on, which may lag behind what was listed as the end.
        """
        offset, in_vain = begin, 0
        while offset < end:
            fetched = await self._cluster.fetch(self.name, _PARTITION, offset, max_bytes=_FETCH_BYTES)
            next_offset = offset
            for position, header in walk(fetched.records):
                next_offset = header.next_offset
                if not header.is_control:
                    for record in iterate_records(fetched.records, position, header, _RECORDS_LIMIT_BYTES):
                        if offset <= record.offset < end:
                            yield record
            in_vain = in_vain + 1 if next_offset == offset else 0
            if in_vain == _EMPTY_FETCHES:
                raise OffsetNotAvailable(
                    f"{self.name}-{_PARTITION} ends at offset {end}, but its leader gives nothing at offset {offset}"
                )
            offset = next_offset

    # Writing

    async def take_over(self, query: str, driver: Producer, now_ms: int) -> None:
        """From now on nobody writes states of this query with an earlier epoch."""
        with suppress(DuplicateSequence):  # It was appended by a request whose answer was lost.
            await self._append(query + _DRIVER_SUFFIX, b"%d %d" % driver, driver, 0, now_ms)

    async def last_driver_id(self, query: str) -> int | None:
        """The producer id of the driver that took over last, where it is known."""
        told = (await self.find(query + _DRIVER_SUFFIX) or b"").split()
        return int(told[0]) if len(told) == 2 else None

    async def shut_out(self, query: str, producer_id: int, now_ms: int) -> None:
        """From now on nobody writes anything with this producer id, whose coordinator has given another one for it."""
        last = Producer(producer_id, _LAST_EPOCH)
        with suppress(DuplicateSequence):  # Somebody else has done so.
            await self._append(query + _DRIVER_SUFFIX, b"%d %d" % last, last, 0, now_ms)

    async def put(self, query: str, state: bytes, driver: Producer, sequence: int, now_ms: int) -> None:
        with suppress(DuplicateSequence):
            await self._append(query, state, driver, sequence, now_ms)

    async def claim(self, name: str, producer: Producer, token: str, now_ms: int) -> bool:
        """Whether this producer, in its epoch, is of whoever drew this token. One of all that ask is told so."""
        wanted = token.encode()
        try:
            offset = (await self._append(_CLAIM_PREFIX + name, wanted, producer, 0, now_ms)).base_offset
        except (DuplicateSequence, InvalidProducerEpoch, ProducerFenced, OutOfOrderSequence):
            return False
        return [record.value async for record in self._records(offset, offset + 1)] == [wanted]

    async def _append(self, key: str, value: bytes, producer: Producer, sequence: int, now_ms: int) -> Produced:
        batch = build_batch(
            [Record(0, now_ms, key.encode(), value)],
            codec=Codec.GZIP if len(value) > 1024 else Codec.NONE,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
        )
        return await self._cluster.produce(self.name, _PARTITION, batch)
