"""The transaction coordinator of this broker: which shard an id lives in, its topic, its settings.

Owns ``__transaction_state``. Must not know what a transaction's states mean: its shard decides.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import TypeVar

from lamina.broker.coordination.broker_batches import AskBroker
from lamina.broker.coordination.coordinator_lookup import knows_election, leader_of
from lamina.broker.coordination.internal_topics import InternalTopics
from lamina.broker.coordination.producer_ids import ProducerIdBlock
from lamina.broker.coordination.runtime import Runtime
from lamina.broker.coordination.shard_log import RecordFormat
from lamina.broker.coordination.transaction_markers import TransactionMarkers, TransactionShardOnLog
from lamina.broker.counters import Counters
from lamina.broker.metadata.listener import MetadataListener
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.threads import Threads
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.coordinators.decision import Effect, Now, Producer, SendMarkers, Waiter
from lamina.coordinators.records.partitioning import partition_of
from lamina.coordinators.records.transaction_codec import decode_record, encode_record
from lamina.coordinators.records.transaction_records import Status, TransactionRecord
from lamina.coordinators.transaction_listing import unknown_states
from lamina.coordinators.transaction_requests import (
    BUMPING,
    AddPartitionsRequest,
    EndRequest,
    InitRequest,
    ListRequest,
    ListResponse,
    ProducerIdNeeded,
    TransactionDescription,
    TransactionListing,
    TransactionSettings,
    Verified,
    VerifyPartitionsRequest,
)
from lamina.coordinators.transactions import TransactionDecision, TransactionShard
from lamina.errors import CoordinatorNotAvailable, KafkaError, NotCoordinator
from lamina.image.features import TRANSACTION_VERSION, level_of
from lamina.image.topic import TRANSACTION_STATE
from lamina.records.batch import NO_SEQUENCE
from lamina.settings.network import REQUEST_TIMEOUT_MS
from lamina.settings.transactions import (
    TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS,
    TRANSACTION_MAX_TIMEOUT_MS,
    TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS,
    TRANSACTION_STATE_LOG_MIN_ISR,
    TRANSACTION_STATE_LOG_NUM_PARTITIONS,
    TRANSACTION_STATE_LOG_REPLICATION_FACTOR,
    TRANSACTION_STATE_LOG_SEGMENT_BYTES,
    TRANSACTIONAL_ID_EXPIRATION_MS,
)
from lamina.topic_partition import TopicPartition

Q = TypeVar("Q", InitRequest, EndRequest)


class TransactionCoordinator(MetadataListener):
    def __init__(
        self,
        metadata: Metadata,
        internal_topics: InternalTopics,
        producer_ids: ProducerIdBlock,
        partitions: Partitions,
        ask_broker: AskBroker,
        counters: Counters,
        threads: Threads,
        clocks: Clocks,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """``ask_broker`` carries markers to other leaders."""
        self._metadata = metadata
        self._internal_topics = internal_topics
        self._producer_ids = producer_ids
        self._clocks = clocks
        self.markers = TransactionMarkers(metadata, producer_ids, partitions, ask_broker, counters, clocks, loop)
        self.runtime: Runtime[TransactionRecord, TransactionShard] = Runtime(
            TRANSACTION_STATE,
            RecordFormat(lambda record: encode_record(record, self.version), decode_record, base_sequence=NO_SEQUENCE),
            self._make_machine,
            self._perform,
            loop,
            clocks,
            threads,
            counters,
            partitions,
            metadata.settings[REQUEST_TIMEOUT_MS],
        )
        self.timed_out = 0
        """Transactions that were aborted because their time ran out."""

    def _make_machine(self, partition: Partition) -> TransactionShard:
        leader_epoch = partition.leader_epoch

        def is_known(topic: str, index: int) -> bool:
            image = self._metadata.image
            return leader_of(image, topic, index) is not None or not knows_election(image, partition, leader_epoch)

        return TransactionShard(self._settings, leader_epoch, is_known)

    # Which shard

    def coordinator_of(self, transactional_id: str) -> int:
        """The broker that coordinates the id; raises CoordinatorNotAvailable while none does."""
        return self.runtime.coordinator_of(self._metadata, transactional_id)

    def coordinator_elsewhere(self, transactional_id: str) -> int | None:
        """The other broker that coordinates the id; ``None`` where it is this one, or none."""
        try:
            coordinator_id = self.coordinator_of(transactional_id)
        except CoordinatorNotAvailable:
            return None
        return None if coordinator_id == self._metadata.node_id else coordinator_id

    def shard_of(self, transactional_id: str) -> TransactionShardOnLog:
        """Raises NotCoordinator where it is another broker's, or nobody's."""
        topic = self._metadata.image.topics.get(TRANSACTION_STATE)
        if topic is None:
            raise NotCoordinator(f"{TRANSACTION_STATE} does not exist yet")
        return self.runtime.shard(partition_of(transactional_id, len(topic.partitions)))

    async def create_topic(self) -> None:
        settings = self._metadata.settings
        await self._internal_topics.create(
            TRANSACTION_STATE,
            settings[TRANSACTION_STATE_LOG_NUM_PARTITIONS],
            TRANSACTION_STATE_LOG_REPLICATION_FACTOR,
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "unclean.leader.election.enable": "false",
                "min.insync.replicas": str(self._internal_topics.copies(TRANSACTION_STATE_LOG_MIN_ISR)),
                "segment.bytes": str(settings[TRANSACTION_STATE_LOG_SEGMENT_BYTES]),
            },
        )

    @property
    def version(self) -> int:
        """The finalized level of ``transaction.version``."""
        return level_of(self._metadata.image, TRANSACTION_VERSION)

    def _settings(self) -> TransactionSettings:
        settings = self._metadata.settings
        return TransactionSettings(
            max_timeout_ms=settings[TRANSACTION_MAX_TIMEOUT_MS],
            abort_timed_out_interval_ms=settings[TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS],
            id_expiration_ms=settings[TRANSACTIONAL_ID_EXPIRATION_MS],
            remove_expired_interval_ms=settings[TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS],
            transaction_version=self.version,
        )

    # What may need a producer id

    async def init_producer_id(self, request: InitRequest) -> Producer:
        return await self._ask(TransactionShard.init_producer_id, request)

    async def end(self, request: EndRequest) -> Producer:
        return await self._ask(TransactionShard.end_txn, request)

    async def _ask(
        self, decide: Callable[[TransactionShard, Q, Waiter, Now], TransactionDecision], request: Q
    ) -> Producer:
        """Ask; if a new producer id is needed, get one and ask again."""
        while True:
            shard = self.shard_of(request.transactional_id)
            try:
                producer: Producer = await shard.ask(partial(_decide, decide, request))
            except ProducerIdNeeded:
                request = request._replace(fresh_producer_id=await self._producer_ids.next())
            else:
                return producer

    # Verifying

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        may_add: bool,
    ) -> Mapping[TopicPartition, KafkaError | None]:
        """Whether each partition is in the producer's open transaction; adds it where clients leave that to brokers."""
        wanted, producer = frozenset(partitions), Producer(producer_id, producer_epoch)
        try:
            shard = self.shard_of(transactional_id)
            if not may_add:
                request = VerifyPartitionsRequest(transactional_id, producer, wanted)
                verified: Verified = await shard.read(lambda machine: machine.verify_partitions(request))
                return verified
            added = AddPartitionsRequest(transactional_id, producer, wanted, BUMPING)
            await shard.ask(lambda machine, waiter, now: machine.add_partitions(added, waiter, now))
        except KafkaError as error:
            return dict.fromkeys(wanted, error)
        return dict.fromkeys(wanted)

    # Looking

    async def describe(self, transactional_id: str) -> TransactionDescription:
        described: TransactionDescription = await self.shard_of(transactional_id).read(
            lambda machine: machine.describe(transactional_id)
        )
        return described

    async def list_transactions(self, request: ListRequest) -> ListResponse:
        """Of all shards, in turns of the loop, once what they tell is committed.

        Raises CoordinatorLoadInProgress while one is not known yet.
        """
        shards, now = [shard for shard in self.runtime if not shard.is_given_up], self._now()
        listed = await self._list(
            request, [shard.look(lambda machine: machine.listings(request, now)) for shard in shards]
        )
        for shard in shards:
            await shard.committed()
        return listed

    async def list_loaded(self, request: ListRequest) -> ListResponse:
        """Of those shards that are known now."""
        machines, now = [shard.machine for shard in self.runtime], self._now()
        return await self._list(request, [one.listings(request, now) for one in machines if one is not None])

    async def _list(
        self, request: ListRequest, by_shard: Iterable[Iterator[TransactionListing | None]]
    ) -> ListResponse:
        listings = [one async for one in in_turns(chain.from_iterable(by_shard), self._clocks) if one is not None]
        return ListResponse(tuple(listings), unknown_states(request))

    def _now(self) -> Now:
        return Now(self._clocks.now_ms(), self._clocks.monotonic_ms())

    def counts(self) -> Counter[Status]:
        """How many transactional ids are in each state, as far as they are loaded."""
        total: Counter[Status] = Counter()
        for shard in self.runtime:
            if shard.machine is not None:
                total.update(shard.machine.counts)
        return total

    # What follows from metadata

    def partition_led(self, partition: Partition) -> None:
        if partition.topic == TRANSACTION_STATE and not self.runtime.goes_on(partition):
            self._resign(partition.index)
            self.runtime.lead(partition)

    def partition_resigned(self, partition: Partition) -> None:
        self.partition_removed(partition.topic, partition.index)

    def partition_removed(self, topic: str, index: int) -> None:
        if topic == TRANSACTION_STATE:
            self._resign(index)

    def _resign(self, index: int) -> None:
        shard = self.runtime.resign(index)
        if shard is not None:
            self.markers.resign(shard)

    def topics_gone(self, topics: frozenset[str]) -> None:
        """A shard that is being loaded finds out by itself which partitions there are."""
        for shard in self.runtime:
            machine = shard.machine
            if machine is not None:
                shard.run(lambda _, m=machine: m.topics_deleted(topics))  # type: ignore[misc]

    # Effects

    def _perform(self, shard: TransactionShardOnLog, effect: Effect) -> None:
        if isinstance(effect, SendMarkers):
            self.timed_out += effect.has_timed_out
            self.markers.send(shard, effect)

    async def close(self) -> None:
        await self.markers.close()
        self.runtime.close()


def _decide(
    decide: Callable[[TransactionShard, Q, Waiter, Now], TransactionDecision],
    request: Q,
    machine: TransactionShard,
    waiter: Waiter,
    now: Now,
) -> TransactionDecision:
    return decide(machine, request, waiter, now)
