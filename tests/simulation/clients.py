"""Clients of one cluster, each a process of its own: what they ask, retry and remember.

Owns how a client behaves when a request fails. Each does its work again and again until it is told to finish, and tells
the judge what it was promised and what it saw. Must not know brokers.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

from lamina.clocks import Clocks
from lamina.errors import ErrorCode, KafkaError, error_from_code
from lamina.peer.addresses import Address
from lamina.peer.call import MessageCall
from lamina.peer.cluster import ClusterClient
from lamina.peer.connector import Connector
from lamina.peer.limits import Limits
from lamina.peer.listing import EARLIEST, LATEST
from lamina.peer.retries import is_retriable
from lamina.peer.target import AnyBroker, Controller, Coordinator, CoordinatorType
from lamina.records.record import Record, build_batch
from lamina.wire.fetch_request import READ_COMMITTED, READ_UNCOMMITTED
from tests.simulation.judge import Judge, TopicPartition
from tests.simulation.reading import Read, read
from tests.simulation.story import Story

LIMITS = Limits(
    connect_timeout_ms=400, request_timeout_ms=800, api_timeout_ms=2400, retry_backoff_ms=20, retry_backoff_max_ms=200
)
_PATIENT = Limits(
    connect_timeout_ms=1000,
    request_timeout_ms=20_000,
    api_timeout_ms=20_000,
    retry_backoff_ms=50,
    retry_backoff_max_ms=500,
)
_MAX_BYTES = 1 << 16
PRODUCE_TIMEOUT_MS = 600
_CREATE_TOPICS, _OFFSET_COMMIT, _OFFSET_FETCH, _INIT_PRODUCER_ID = 19, 8, 9, 22


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every client of a cluster is given."""

    story: Story
    judge: Judge
    rng: Random
    clocks: Clocks
    bootstrap: Sequence[Address]


class SimulatedClient:
    def __init__(self, name: str, around: Surroundings, connector: Connector) -> None:
        self.name = name
        self.judge = around.judge
        self.rng = around.rng
        self.is_finishing = False
        """Whether faults are over: what is begun is brought to an end, and nothing new is begun."""
        self._around = around
        self._connector = connector
        self._story = around.story
        self._clocks = around.clocks
        self._count = 0
        self.cluster = ClusterClient(around.bootstrap, connector, around.rng.random, LIMITS)

    def tell(self, what: str) -> None:
        self._story.tell(self.name, what)

    async def run(self) -> None:
        async with self.cluster:
            while not await self.step():
                await asyncio.sleep(self.rng.uniform(0.0, 0.6))

    async def step(self) -> bool:
        """Do the next thing. Returns whether all is done."""
        raise NotImplementedError

    def new_values(self, count: int) -> list[bytes]:
        self._count += count
        return [f"{self.name}:{number}".encode() for number in range(self._count - count, self._count)]

    def batch(self, values: Sequence[bytes], **producer: Any) -> bytes:
        now_ms = self._clocks.now_ms()
        records = [Record(number, now_ms, None, value) for number, value in enumerate(values)]
        return bytes(build_batch(records, **producer))

    def failed(self, what: str, error: KafkaError) -> None:
        """What a client may see while there are faults; anything else is a promise broken."""
        self.tell(f"{what}: {type(error).__name__}: {error}")
        if not is_retriable(error):
            raise self.judge.violated(f"{self.name}: {what}: {error!r}")


class Admin(SimulatedClient):
    async def create_topics(self, topics: dict[str, int]) -> None:
        wanted = [
            {"name": name, "num_partitions": count, "replication_factor": -1, "assignments": [], "configs": []}
            for name, count in topics.items()
        ]
        call = MessageCall(
            _CREATE_TOPICS, range(7, 8), topics=wanted, timeout=timedelta(seconds=5), validate_only=False
        )
        for topic in (await self.cluster.request(Controller(), call)).topics:
            if topic.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                raise error_from_code(topic.error_code, topic.error_message or "")

    async def read_all(self, key: TopicPartition, isolation_level: int) -> list[Read]:
        """Everything from the start to the end of a partition, once no transaction in it is open."""
        end = (await self.cluster.list_offset(*key, LATEST)).offset
        while (await self.cluster.list_offset(*key, LATEST, isolation_level=READ_COMMITTED)).offset < end:
            await asyncio.sleep(0.05)
        records: list[Read] = []
        position = start = (await self.cluster.list_offset(*key, EARLIEST)).offset
        while position < end:
            fetched = await self.cluster.fetch(
                *key, position, max_bytes=_MAX_BYTES, max_wait_ms=100, isolation_level=isolation_level
            )
            records += read(fetched)
            position = records[-1].offset + 1
        return [record for record in records if record.offset >= start]

    async def write_one(self, key: TopicPartition) -> None:
        """One record, sent once: it is acknowledged in the end, and may take its time."""
        values = self.new_values(1)
        async with ClusterClient(self._around.bootstrap, self._connector, self.rng.random, _PATIENT) as cluster:
            produced = await cluster.produce(*key, self.batch(values), timeout_ms=_PATIENT.request_timeout_ms)
        self.tell(f"produced {values} at {produced.base_offset} of {key}")
        self.judge.acknowledged(key, produced.base_offset, values)


class PlainProducer(SimulatedClient):
    """At least once: what is answered is there; what is not may be there once, twice or not at all."""

    def __init__(
        self,
        name: str,
        around: Surroundings,
        connector: Connector,
        key: TopicPartition,
        acks: int,
        *,
        is_promised: bool = True,
    ) -> None:
        """``is_promised`` unless an answer says nothing of what becomes of the record: acks=1 in a cluster."""
        super().__init__(name, around, connector)
        self._key = key
        self._acks = acks
        self._is_promised = is_promised

    async def step(self) -> bool:
        if self.is_finishing:
            return True
        values = self.new_values(self.rng.randint(1, 3))
        try:
            produced = await self.cluster.produce(
                *self._key, self.batch(values), acks=self._acks, timeout_ms=PRODUCE_TIMEOUT_MS
            )
        except KafkaError as error:
            self.failed(f"produce {values}", error)
        else:
            self.tell(f"produced {values} at {produced.base_offset} of {self._key}")
            if self._is_promised:
                self.judge.acknowledged(self._key, produced.base_offset, values)
        return False


class IdempotentProducer(SimulatedClient):
    """Exactly once: a batch is sent until it is answered."""

    def __init__(self, name: str, around: Surroundings, connector: Connector, key: TopicPartition) -> None:
        super().__init__(name, around, connector)
        self._key = key
        self._producer_id = -1
        self._sequence = 0
        self._values: list[bytes] = []
        """What is not answered yet."""

    async def step(self) -> bool:
        try:
            if self._producer_id < 0:
                await self._init()
            if not self._values:
                if self.is_finishing:
                    return True
                self._values = self.new_values(self.rng.randint(1, 3))
                self.judge.written_once(self._values)
            await self._produce()
        except KafkaError as error:
            self.failed(f"produce {self._values} from sequence {self._sequence}", error)
        return False

    async def _init(self) -> None:
        call = MessageCall(
            _INIT_PRODUCER_ID,
            range(3, 5),
            transactional_id=None,
            transaction_timeout=timedelta(0),
            producer_id=-1,
            producer_epoch=-1,
        )
        response = await self.cluster.request(AnyBroker(), call)
        if response.error_code:
            raise error_from_code(response.error_code, "InitProducerId")
        self._producer_id = response.producer_id

    async def _produce(self) -> None:
        values = self._values
        batch = self.batch(values, producer_id=self._producer_id, producer_epoch=0, base_sequence=self._sequence)
        produced = await self.cluster.produce(*self._key, batch, timeout_ms=PRODUCE_TIMEOUT_MS)
        self.tell(f"produced {values} at {produced.base_offset} of {self._key}, sequence {self._sequence}")
        self.judge.acknowledged(self._key, produced.base_offset, values)
        self._sequence += len(values)
        self._values = []


class Reader(SimulatedClient):
    """Reads one partition, and commits how far it has come in a group of its own."""

    def __init__(
        self, name: str, around: Surroundings, connector: Connector, key: TopicPartition, isolation_level: int
    ) -> None:
        super().__init__(name, around, connector)
        self._key = key
        self._isolation_level = isolation_level
        self._position = 0
        self._commits = {0}
        """What was ever sent: a request of a connection that died may come late, behind a later one."""

    async def step(self) -> bool:
        try:
            if self.is_finishing:
                return await self._finish()
            if self.rng.random() < 0.3:
                await self._commit()
            elif self.rng.random() < 0.15:
                await self._restart()
            elif self.rng.random() < 0.15:
                await self._list_latest()
            else:
                await self._fetch()
        except KafkaError as error:
            if error.code == ErrorCode.OFFSET_OUT_OF_RANGE and self.judge.power_cuts:
                self.tell(f"begins again, {self._position} of {self._key} is lost")
                self._position = 0
            else:
                self.failed("read", error)
        return False

    async def _fetch(self) -> None:
        fetched = await self.cluster.fetch(
            *self._key, self._position, max_bytes=_MAX_BYTES, max_wait_ms=150, isolation_level=self._isolation_level
        )
        self.judge.saw_high_watermark(self.name, self._key, fetched.high_watermark)
        for record in read(fetched):
            if record.offset < self._position:
                continue
            if self._isolation_level == READ_UNCOMMITTED and record.offset != self._position:
                raise self.judge.violated(f"{self._key} has nothing at {self._position}, and {record}")
            self._position = record.offset + 1
            self.judge.saw(self._key, record.offset, record.value)
            if self._isolation_level == READ_COMMITTED and record.is_visible:
                self.judge.saw_committed(self._key, record.value)
        self.tell(f"read {self._key} up to {self._position}, high watermark {fetched.high_watermark}")

    async def _list_latest(self) -> None:
        latest = await self.cluster.list_offset(*self._key, LATEST)
        self.tell(f"is told that {self._key} ends at {latest.offset}")
        self.judge.saw_latest(self.name, self._key, latest.offset)

    async def _commit(self) -> None:
        self._commits.add(self._position)
        partition = {
            "partition_index": self._key[1],
            "committed_offset": self._position,
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        call = MessageCall(
            _OFFSET_COMMIT,
            range(8, 9),
            group_id=self.name,
            generation_id_or_member_epoch=-1,
            member_id="",
            group_instance_id=None,
            topics=[{"name": self._key[0], "partitions": [partition]}],
        )
        response = await self.cluster.request(Coordinator(CoordinatorType.GROUP, self.name), call)
        code = response.topics[0].partitions[0].error_code
        if code:
            raise error_from_code(code, "OffsetCommit")
        self.tell(f"committed {self._position} of {self._key}")

    async def _finish(self) -> bool:
        """Without faults, what is committed is found."""
        await self._commit()
        found = await committed_offset(self.cluster, self.name, self._key)
        if found != self._position:
            raise self.judge.violated(f"{self.name} committed {self._position}, and found {found}")
        return True

    async def _restart(self) -> None:
        self._position = await committed_offset(self.cluster, self.name, self._key)
        self.tell(f"begins again at {self._position} of {self._key}")
        if self._position not in self._commits:
            raise self.judge.violated(f"{self.name} committed {self._commits}, and found {self._position}")


async def committed_offset(cluster: ClusterClient, group: str, key: TopicPartition) -> int:
    """0 where nothing was committed."""
    call = MessageCall(
        _OFFSET_FETCH,
        range(8, 9),
        groups=[{"group_id": group, "topics": [{"name": key[0], "partition_indexes": [key[1]]}]}],
        require_stable=True,
    )
    (found,) = (await cluster.request(Coordinator(CoordinatorType.GROUP, group), call)).groups
    if found.error_code:
        raise error_from_code(found.error_code, "OffsetFetch")
    partition = found.topics[0].partitions[0]
    if partition.error_code:
        raise error_from_code(partition.error_code, "OffsetFetch")
    return max(0, int(partition.committed_offset))
