"""The transaction coordinator of this broker: which shard an id lives in, its topic, its settings, its markers.

Owns ``__transaction_state`` and the markers that end transactions: they are written into every partition that is still
there, again and again until each has its own. Must not know what a transaction's states mean: its shard decides.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from lamina.broker.internal_topics import make_internal_topic
from lamina.broker.partition import Partition
from lamina.broker.runtime import Runtime, Shard
from lamina.coordinators.decision import Effect, Now, Producer, SendMarkers
from lamina.coordinators.group_requests import TransactionalCommitRequest
from lamina.coordinators.records.partitioning import partition_of
from lamina.coordinators.records.transaction_codec import decode_record, encode_record
from lamina.coordinators.records.transaction_records import TransactionRecord
from lamina.coordinators.transaction_requests import (
    AddPartitionsRequest,
    EndRequest,
    InitRequest,
    ListAnswer,
    ListRequest,
    ProducerIdNeeded,
    TransactionDescription,
    VerifyPartitionsRequest,
)
from lamina.coordinators.transaction_settings import BUMPING, TransactionSettings
from lamina.coordinators.transactions import TransactionShard
from lamina.errors import (
    InvalidProducerEpoch,
    KafkaError,
    NotCoordinator,
    StorageError,
    TransactionCoordinatorFenced,
    UnknownTopicOrPartition,
)
from lamina.image.features import TRANSACTION_VERSION, level_of
from lamina.image.topic import TRANSACTION_STATE, TopicPartition
from lamina.log.verification import Verification
from lamina.records.batch import NO_SEQUENCE, Codec
from lamina.settings.transactions import (
    TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS,
    TRANSACTION_MAX_TIMEOUT_MS,
    TRANSACTION_PARTITION_VERIFICATION_ENABLE,
    TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS,
    TRANSACTION_STATE_LOG_MIN_ISR,
    TRANSACTION_STATE_LOG_NUM_PARTITIONS,
    TRANSACTION_STATE_LOG_REPLICATION_FACTOR,
    TRANSACTION_STATE_LOG_SEGMENT_BYTES,
    TRANSACTIONAL_ID_EXPIRATION_MS,
)

if TYPE_CHECKING:
    from lamina.broker.node import Node

logger = logging.getLogger(__name__)

T = TypeVar("T")

_MARKER_RETRY_SECONDS = 0.1
_MARKER_RETRY_MAX_SECONDS = 5.0

TransactionShardOnLog = Shard[TransactionRecord, TransactionShard]


class TransactionCoordinator:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self.runtime: Runtime[TransactionRecord, TransactionShard] = Runtime(
            node,
            TRANSACTION_STATE,
            lambda partition: TransactionShard(self._settings, partition.leader_epoch),
            encode_record,
            decode_record,
            Codec.NONE,
            self._perform,
            base_sequence=NO_SEQUENCE,
        )
        self._sending: set[asyncio.Task[None]] = set()

    # Which shard

    def shard_of(self, transactional_id: str) -> TransactionShardOnLog:
        """Raises NotCoordinator while there is none."""
        topic = self._node.image.topics.get(TRANSACTION_STATE)
        if topic is None:
            raise NotCoordinator(f"{TRANSACTION_STATE} is not made yet")
        return self.runtime.shard(partition_of(transactional_id, len(topic.partitions)))

    async def make_topic(self) -> None:
        settings = self._node.settings
        await make_internal_topic(
            self._node,
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
        settings = self._node.settings
        wanted: int = settings[TRANSACTION_STATE_LOG_MIN_ISR]
        if settings.is_given(TRANSACTION_STATE_LOG_MIN_ISR):
            return wanted
        return min(wanted, len(self._node.image.brokers))

    @property
    def version(self) -> int:
        """The finalized level of ``transaction.version``."""
        return level_of(self._node.image, TRANSACTION_VERSION)

    def _settings(self) -> TransactionSettings:
        settings = self._node.settings
        return TransactionSettings(
            max_timeout_ms=settings[TRANSACTION_MAX_TIMEOUT_MS],
            abort_timed_out_interval_ms=settings[TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS],
            id_expiration_ms=settings[TRANSACTIONAL_ID_EXPIRATION_MS],
            remove_expired_interval_ms=settings[TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS],
            transaction_version=self.version,
        )

    # What may need a producer id

    async def init_producer_id(self, request: InitRequest) -> Producer:
        return await self._with_producer_id(
            request.transactional_id,
            lambda machine, waiter, now, fresh: machine.init_producer_id(
                request._replace(fresh_producer_id=fresh), waiter, now
            ),
        )

    async def end(self, request: EndRequest) -> Producer:
        return await self._with_producer_id(
            request.transactional_id,
            lambda machine, waiter, now, fresh: machine.end_txn(request._replace(fresh_producer_id=fresh), waiter, now),
        )

    async def _with_producer_id(
        self, transactional_id: str, decide: Callable[[TransactionShard, int, Now, int | None], Any]
    ) -> Producer:
        """Ask; if a producer id is wanted that nobody had before, get one and ask again."""
        fresh: int | None = None
        while True:
            shard = self.shard_of(transactional_id)
            try:
                asked: Any = shard.ask(lambda machine, waiter, now, f=fresh: decide(machine, waiter, now, f))  # type: ignore[misc]
                answer: Producer = await asked if isinstance(asked, asyncio.Future) else asked
            except ProducerIdNeeded:
                fresh = await self._node.producer_ids.next()
            else:
                return answer

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
            asked: Any = shard.ask(lambda machine, waiter, now: machine.add_partitions(added, waiter, now))
            if isinstance(asked, asyncio.Future):
                await asked
        except KafkaError as error:
            return dict.fromkeys(wanted, error)
        return dict.fromkeys(wanted)

    async def verify_commit(
        self, partition: Partition, commit: TransactionalCommitRequest, *, may_add: bool
    ) -> Verification | None:
        """What offsets are committed with in a transaction; raises why they may not be."""
        producers, now_ms = partition.log.producers, self._node.now_ms()
        verification = producers.begin_verification(
            commit.producer_id, commit.producer_epoch, 0, now_ms, begins_at_zero=False
        )
        if verification is None or not (may_add or self._node.settings[TRANSACTION_PARTITION_VERIFICATION_ENABLE]):
            return verification
        key = (partition.topic, partition.index)
        answers = await self.verify(commit.transactional_id, commit.producer_id, commit.producer_epoch, [key], may_add)
        refusal = answers[key]
        if refusal is not None:
            raise refusal
        return verification

    # Looking

    def describe(self, transactional_id: str) -> TransactionDescription:
        return self.shard_of(transactional_id).look(lambda machine: machine.describe(transactional_id))

    def list_transactions(self, request: ListRequest) -> ListAnswer:
        """Of all shards; raises CoordinatorLoadInProgress while one is not known yet."""
        now = Now(self._node.now_ms(), self._node.monotonic_ms())
        answers = [shard.look(lambda machine: machine.list_transactions(request, now)) for shard in self.runtime]
        unknown = answers[0].unknown_states if answers else ()
        return ListAnswer(tuple(one for answer in answers for one in answer.listings), unknown)

    # Markers

    def _perform(self, shard: TransactionShardOnLog, effect: Effect) -> None:
        if isinstance(effect, SendMarkers):
            task = self._node.loop.create_task(self._send_markers(shard, effect))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send_markers(self, shard: TransactionShardOnLog, effect: SendMarkers) -> None:
        left, wait_seconds = set(effect.partitions), _MARKER_RETRY_SECONDS
        machine = shard.machine
        while left:
            left -= {partition for partition in left if self._write_marker(partition, effect)}
            if left:
                await asyncio.sleep(wait_seconds)
                wait_seconds = min(2 * wait_seconds, _MARKER_RETRY_MAX_SECONDS)
                if shard.machine is not machine or self._node.is_stopping:
                    return
        fresh = await self._node.producer_ids.next() if effect.needs_producer_id else None
        if shard.machine is machine and machine is not None:
            shard.run(lambda now: machine.markers_written(effect.transactional_id, effect.producer, now, fresh))

    def _write_marker(self, key: TopicPartition, effect: SendMarkers) -> bool:
        """True when the partition needs no marker any more."""
        try:
            self._node.partitions.get(*key).append_marker(
                *effect.producer,
                effect.coordinator_epoch,
                is_commit=effect.is_commit,
                transaction_version=effect.transaction_version,
                now_ms=self._node.now_ms(),
            )
        except UnknownTopicOrPartition:
            # The topic is gone, and with it what was written.
            return True
        except (InvalidProducerEpoch, TransactionCoordinatorFenced) as error:
            logger.warning("%s-%d takes no marker of %s: %s", *key, effect.transactional_id, error)
            return True
        except StorageError as error:
            logger.debug("%s-%d cannot take a marker now: %s", *key, error)
            return False
        return True

    async def close(self) -> None:
        """End what is under way; the next start takes it up again."""
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
        self.runtime.close()
