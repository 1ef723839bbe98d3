"""The transaction coordinator of this broker: which shard an id lives in, its topic, its settings, its markers.

Owns ``__transaction_state`` and the markers that end transactions: they are written into every partition that is still
there, again and again until each has its own. Must not know what a transaction's states mean: its shard decides.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TypeVar

from lamina.broker.coordination.internal_topics import InternalTopics
from lamina.broker.coordination.producer_ids import ProducerIdBlock
from lamina.broker.coordination.runtime import Runtime
from lamina.broker.coordination.shard import Shard
from lamina.broker.coordination.shard_log import RecordFormat
from lamina.broker.counters import Counters, Place
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.metadata.publisher import Follower
from lamina.broker.partitions.commits import all_committed
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.threads import Threads
from lamina.clocks import Clocks
from lamina.coordinators.decision import Effect, Now, Producer, SendMarkers, Waiter
from lamina.coordinators.records.partitioning import partition_of
from lamina.coordinators.records.transaction_codec import decode_record, encode_record
from lamina.coordinators.records.transaction_records import Status, TransactionRecord
from lamina.coordinators.transaction_requests import (
    BUMPING,
    AddPartitionsRequest,
    EndRequest,
    InitRequest,
    ListRequest,
    ListResponse,
    ProducerIdNeeded,
    TransactionDescription,
    TransactionSettings,
    VerifyPartitionsRequest,
)
from lamina.coordinators.transactions import TransactionDecision, TransactionShard
from lamina.errors import (
    InvalidProducerEpoch,
    KafkaError,
    NotCoordinator,
    StorageError,
    TransactionCoordinatorFenced,
)
from lamina.image.diff import Changes
from lamina.image.features import TRANSACTION_VERSION, level_of
from lamina.image.topic import TRANSACTION_STATE, TopicPartition
from lamina.records.batch import NO_SEQUENCE
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

logger = logging.getLogger(__name__)

_MARKER_RETRY_SECONDS = 0.1
_MARKER_RETRY_MAX_SECONDS = 5.0
_PARTITIONS_AT_A_TIME = 64

TransactionShardOnLog = Shard[TransactionRecord, TransactionShard]
Q = TypeVar("Q", InitRequest, EndRequest)


class TransactionCoordinator(Follower):
    def __init__(
        self,
        metadata: Metadata,
        internal_topics: InternalTopics,
        producer_ids: ProducerIdBlock,
        partitions: Partitions,
        counters: Counters,
        threads: Threads,
        clocks: Clocks,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._metadata = metadata
        self._internal_topics = internal_topics
        self._producer_ids = producer_ids
        self._partitions = partitions
        self._counters = counters
        self._clocks = clocks
        self._loop = loop
        self.runtime: Runtime[TransactionRecord, TransactionShard] = Runtime(
            TRANSACTION_STATE,
            RecordFormat(lambda record: encode_record(record, self.version), decode_record, base_sequence=NO_SEQUENCE),
            lambda partition: TransactionShard(self._settings, partition.leader_epoch, partitions.is_known),
            self._perform,
            loop,
            clocks,
            threads,
            counters,
            partitions,
        )
        self._sending: dict[asyncio.Task[None], SendMarkers] = {}
        self.markers_written = 0
        self.timed_out = 0

    # Which shard

    def shard_of(self, transactional_id: str) -> TransactionShardOnLog:
        """Raises NotCoordinator while there is none."""
        topic = self._metadata.image.topics.get(TRANSACTION_STATE)
        if topic is None:
            raise NotCoordinator(f"{TRANSACTION_STATE} is not made yet")
        return self.runtime.shard(partition_of(transactional_id, len(topic.partitions)))

    async def make_topic(self) -> None:
        settings = self._metadata.settings
        await self._internal_topics.create(
            TRANSACTION_STATE,
            settings[TRANSACTION_STATE_LOG_NUM_PARTITIONS],
            TRANSACTION_STATE_LOG_REPLICATION_FACTOR,
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "unclean.leader.election.enable": "false",
                "min.insync.replicas": str(self._min_in_sync()),
                "segment.bytes": str(settings[TRANSACTION_STATE_LOG_SEGMENT_BYTES]),
            },
        )

    def _min_in_sync(self) -> int:
        """As many as are asked for; unless somebody asks, no more than there are brokers."""
        settings = self._metadata.settings
        wanted: int = settings[TRANSACTION_STATE_LOG_MIN_ISR]
        if settings.is_given(TRANSACTION_STATE_LOG_MIN_ISR):
            return wanted
        return min(wanted, len(self._metadata.image.brokers))

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
        """Ask; if a producer id is needed that nobody had before, get one and ask again."""
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
                return shard.look(lambda machine: machine.verify_partitions(request))
            added = AddPartitionsRequest(transactional_id, producer, wanted, BUMPING)
            await shard.ask(lambda machine, waiter, now: machine.add_partitions(added, waiter, now))
        except KafkaError as error:
            return dict.fromkeys(wanted, error)
        return dict.fromkeys(wanted)

    # Looking

    def describe(self, transactional_id: str) -> TransactionDescription:
        return self.shard_of(transactional_id).look(lambda machine: machine.describe(transactional_id))

    def list_transactions(self, request: ListRequest) -> ListResponse:
        """Of all shards; raises CoordinatorLoadInProgress while one is not known yet."""
        return self._list(request, [shard for shard in self.runtime if not shard.is_given_up])

    def list_loaded(self, request: ListRequest) -> ListResponse:
        """Of those shards that are known now."""
        return self._list(request, [shard for shard in self.runtime if shard.machine is not None])

    def _list(self, request: ListRequest, shards: list[TransactionShardOnLog]) -> ListResponse:
        now = Now(self._clocks.now_ms(), self._clocks.monotonic_ms())
        responses = [shard.look(lambda machine: machine.list_transactions(request, now)) for shard in shards]
        unknown = responses[0].unknown_states if responses else ()
        return ListResponse(tuple(one for response in responses for one in response.listings), unknown)

    def counts(self) -> Counter[Status]:
        """How many transactional ids are in each state, as far as they are loaded."""
        total: Counter[Status] = Counter()
        for shard in self.runtime:
            if shard.machine is not None:
                total.update(shard.machine.counts)
        return total

    # What follows from metadata

    def partition_led(self, partition: Partition) -> None:
        if partition.topic == TRANSACTION_STATE:
            self.runtime.lead(partition)

    def partition_removed(self, topic: str, index: int) -> None:
        if topic == TRANSACTION_STATE:
            self.runtime.resign(index)

    def image_changed(self, changes: Changes) -> None:
        gone = frozenset(topic.name for topic in changes.topics_being_deleted)
        if gone:
            self.topics_deleted(gone)

    # Markers

    def topics_deleted(self, topics: frozenset[str]) -> None:
        """A shard that is being loaded finds out by itself which partitions there are."""
        for shard in self.runtime:
            machine = shard.machine
            if machine is not None:
                shard.run(lambda _, m=machine: m.topics_deleted(topics))  # type: ignore[misc]

    def _perform(self, shard: TransactionShardOnLog, effect: Effect) -> None:
        if not isinstance(effect, SendMarkers):
            return
        self.timed_out += effect.has_timed_out
        left: set[TopicPartition] = set(effect.partitions)
        flushing: list[Partition] = []
        if len(left) <= _PARTITIONS_AT_A_TIME:
            left, flushing = self._write_markers(left, effect)
        is_written = not left and not flushing and not effect.needs_producer_id
        if is_written and self._complete(shard, effect, None):
            # As nearly always: the producer may begin its next transaction at once.
            return
        task = self._loop.create_task(self._send_markers(shard, effect, left, flushing))
        self._sending[task] = effect
        task.add_done_callback(lambda done: self._sending.pop(done, None))

    async def _send_markers(
        self, shard: TransactionShardOnLog, effect: SendMarkers, left: set[TopicPartition], flushing: list[Partition]
    ) -> None:
        """Until every partition has its marker, on disk where that is asked for, and the transaction is complete."""
        machine, wait_seconds = shard.machine, _MARKER_RETRY_SECONDS
        # A machine that was loaded again has sent its markers anew, or another broker does.
        while shard.machine is machine:
            left |= (await all_committed(flushing, self._clocks)).keys()
            waiting, left, flushing = sorted(left), set(), []
            for start in range(0, len(waiting), _PARTITIONS_AT_A_TIME):
                failed, unflushed = self._write_markers(waiting[start : start + _PARTITIONS_AT_A_TIME], effect)
                left |= failed
                flushing += unflushed
                await asyncio.sleep(0)
            if flushing and not left:
                continue
            if not left and await self._complete_with_producer_id(shard, machine, effect):
                return
            await asyncio.sleep(wait_seconds)
            wait_seconds = min(2 * wait_seconds, _MARKER_RETRY_MAX_SECONDS)

    async def _complete_with_producer_id(
        self, shard: TransactionShardOnLog, machine: TransactionShard | None, effect: SendMarkers
    ) -> bool:
        """Complete the transaction, if the producer id can be had that its client needs to go on."""
        fresh: int | None = None
        if effect.needs_producer_id:
            try:
                fresh = await self._producer_ids.next()
            except Exception as error:
                self._counters.count_unexpected(Place.COORDINATOR)
                logger.error("%r: no producer id for its next transaction", effect.transactional_id, exc_info=error)
                return False
        return shard.machine is machine and self._complete(shard, effect, fresh)

    def _complete(self, shard: TransactionShardOnLog, effect: SendMarkers, fresh: int | None) -> bool:
        """Every partition has its marker. Returns whether the log could be told so."""
        machine = shard.machine
        return machine is not None and shard.run(
            lambda now: machine.markers_written(effect.transactional_id, effect.producer, now, fresh)
        )

    def _write_markers(
        self, partitions: Iterable[TopicPartition], effect: SendMarkers
    ) -> tuple[set[TopicPartition], list[Partition]]:
        """Those that could not take their marker, and those where it is not on disk yet but must be."""
        left: set[TopicPartition] = set()
        flushing: list[Partition] = []
        now_ms = self._clocks.now_ms()
        for key in partitions:
            partition = self._partitions.find(*key)
            if partition is None:
                if self._partitions.is_known(*key):
                    left.add(key)
                # Else the topic is gone, and with it what was written.
                continue
            try:
                partition.append_marker(
                    *effect.producer,
                    effect.coordinator_epoch,
                    is_commit=effect.is_commit,
                    transaction_version=effect.transaction_version,
                    now_ms=now_ms,
                )
            except (InvalidProducerEpoch, TransactionCoordinatorFenced) as error:
                logger.warning("%s-%d takes no marker of %s: %s", *key, effect.transactional_id, error)
            except StorageError as error:
                logger.debug("%s-%d cannot take a marker now: %s", *key, error)
                left.add(key)
            except Exception as error:
                self._partitions.failed(*key, error)
                left.add(key)
            else:
                self.markers_written += 1
                if not partition.is_committed():
                    flushing.append(partition)
        return left, flushing

    @property
    def markers_pending(self) -> int:
        """Transactions whose markers could not be written at once, each with its partitions."""
        return sum(len(effect.partitions) for effect in self._sending.values())

    async def close(self) -> None:
        """End what is under way; the next start takes it up again."""
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
        self.runtime.close()


def _decide(
    decide: Callable[[TransactionShard, Q, Waiter, Now], TransactionDecision],
    request: Q,
    machine: TransactionShard,
    waiter: Waiter,
    now: Now,
) -> TransactionDecision:
    return decide(machine, request, waiter, now)
