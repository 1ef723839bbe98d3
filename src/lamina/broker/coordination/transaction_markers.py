"""The markers that end transactions: written into every partition that is still there, until each has its own.

A partition that this broker leads gets its marker in the turn that sends it; those of other leaders are asked for, as
the image names them each time. Owns what is under way, and for whom; tells the shard when all markers of a transaction
are committed. Must not know what a transaction's states mean.
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from lamina.broker.coordination.broker_batches import AskBroker
from lamina.broker.coordination.coordinator_lookup import knows_election, leader_of
from lamina.broker.coordination.producer_ids import ProducerIdBlock
from lamina.broker.coordination.remote_markers import RemoteMarkers
from lamina.broker.coordination.shard import Shard
from lamina.broker.counters import Counters, Place
from lamina.broker.metadata.metadata import Metadata
from lamina.broker.partitions.commits import all_committed
from lamina.broker.partitions.partition import CommitPoint, Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.broker.turns import in_turns
from lamina.clocks import Clocks
from lamina.coordinators.decision import SendMarkers
from lamina.coordinators.records.transaction_records import TransactionRecord
from lamina.coordinators.transactions import TransactionShard
from lamina.errors import (
    CoordinatorLoadInProgress,
    ErrorCode,
    InvalidProducerEpoch,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    RequestTimedOut,
    StorageError,
    TransactionCoordinatorFenced,
)
from lamina.image.topic import NO_LEADER
from lamina.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 0.1
_RETRY_MAX_SECONDS = 1.0
_PARTITIONS_AT_ONCE = 32
"""With more the markers are written in turns of the loop: one may open the files of an index, in 0.4 ms."""
_REFUSED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
"""For good: the partition has seen a newer producer or a newer coordinator (R75)."""

TransactionShardOnLog = Shard[TransactionRecord, TransactionShard]
Awaited = tuple[Partition, CommitPoint]


@dataclass(slots=True)
class _Attempt:
    """One marker in every partition that lacks it: what has become of it so far."""

    left: set[TopicPartition] = field(default_factory=set)
    """Those that could not take it now."""
    uncommitted: list[Awaited] = field(default_factory=list)
    """Those that have it, and wait for other replicas or the disk."""
    elsewhere: dict[int, set[TopicPartition]] = field(default_factory=dict)
    """Those of other leaders, which are still to be asked."""

    @property
    def is_over(self) -> bool:
        return not (self.left or self.uncommitted or self.elsewhere)


class TransactionMarkers:
    def __init__(
        self,
        metadata: Metadata,
        producer_ids: ProducerIdBlock,
        partitions: Partitions,
        ask_broker: AskBroker,
        counters: Counters,
        clocks: Clocks,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._metadata = metadata
        self._producer_ids = producer_ids
        self._partitions = partitions
        self._remote = RemoteMarkers(ask_broker, loop)
        self._counters = counters
        self._clocks = clocks
        self._loop = loop
        self._sending: dict[asyncio.Task[None], tuple[TransactionShardOnLog, SendMarkers]] = {}
        self.written = 0

    @property
    def pending(self) -> int:
        """Partitions of transactions whose markers could not be written at once."""
        return sum(len(effect.partitions) for _, effect in self._sending.values())

    def send(self, shard: TransactionShardOnLog, effect: SendMarkers) -> None:
        begun: _Attempt | None = None
        if len(effect.partitions) <= _PARTITIONS_AT_ONCE:
            begun = self._write_here(shard, effect, effect.partitions, _Attempt())
            is_written = begun.is_over and not effect.needs_producer_id
            if is_written and self._complete(shard, effect, None):
                # As nearly always: the producer may begin its next transaction at once.
                return
        task = self._loop.create_task(self._send(shard, effect, begun))
        self._sending[task] = (shard, effect)
        task.add_done_callback(lambda done: self._sending.pop(done, None))

    def resign(self, shard: TransactionShardOnLog) -> None:
        """Another broker coordinates what lives in this shard, and sends its markers."""
        for task, (of, _) in list(self._sending.items()):
            if of is shard:
                task.cancel()

    async def _send(self, shard: TransactionShardOnLog, effect: SendMarkers, begun: _Attempt | None) -> None:
        """Until every partition has its marker, committed, and the transaction is complete."""
        machine, wait_seconds = shard.machine, _RETRY_SECONDS
        attempt, left, uncommitted = begun, set(effect.partitions), list[Awaited]()
        # A machine that was loaded again has sent its markers again, or another broker does.
        while shard.machine is machine:
            try:
                if attempt is None:
                    attempt = await self._begin(shard, effect, left, uncommitted)
                left, uncommitted = await self._finish(attempt, effect)
                if not (left or uncommitted) and await self._complete_with_producer_id(shard, machine, effect):
                    return
            except Exception as error:
                self._counters.count_unexpected(Place.COORDINATOR)
                logger.error("%r: its markers could not be sent", effect.transactional_id, exc_info=error)
                # Nobody knows what has become of them. A partition that has its marker may get it again.
                left, uncommitted = set(effect.partitions), []
            attempt = None
            await asyncio.sleep(wait_seconds)
            wait_seconds = min(2 * wait_seconds, _RETRY_MAX_SECONDS)

    async def _begin(
        self,
        shard: TransactionShardOnLog,
        effect: SendMarkers,
        partitions: Iterable[TopicPartition],
        uncommitted: list[Awaited],
    ) -> _Attempt:
        attempt = _Attempt(uncommitted=uncommitted)
        async for key in in_turns(sorted(partitions), self._clocks):
            self._write_here(shard, effect, (key,), attempt)
        return attempt

    async def _finish(self, attempt: _Attempt, effect: SendMarkers) -> tuple[set[TopicPartition], list[Awaited]]:
        """Those that have no marker yet, once all leaders have answered, and those of this broker that have one that is
        not committed. While there are any of the first, the second are not waited for for long."""
        left = attempt.left | await self._write_elsewhere(attempt, effect)
        timeout_ms = int(_RETRY_MAX_SECONDS * 1000) if left else None
        failed = await all_committed(attempt.uncommitted, self._clocks, timeout_ms=timeout_ms)
        uncommitted = []
        for partition, point in attempt.uncommitted:
            key = (partition.topic, partition.index)
            if isinstance(failed.get(key), RequestTimedOut):
                uncommitted.append((partition, point))
            elif key in failed:
                left.add(key)
        return left, uncommitted

    async def _write_elsewhere(self, attempt: _Attempt, effect: SendMarkers) -> set[TopicPartition]:
        """Have other leaders write. Returns those that could not take it now."""
        left = set()
        outcome = await self._remote.write(effect, attempt.elsewhere) if attempt.elsewhere else {}
        for key, code in outcome.items():
            if code in _REFUSED:
                logger.warning("%s-%d takes no marker of %s: error %d", *key, effect.transactional_id, code)
            elif code:
                logger.debug("%s-%d cannot take a marker now: error %d", *key, code)
                left.add(key)
        return left

    async def _complete_with_producer_id(
        self, shard: TransactionShardOnLog, machine: TransactionShard | None, effect: SendMarkers
    ) -> bool:
        """Complete the transaction, if the producer id can be had that its client needs to go on."""
        fresh: int | None = None
        if effect.needs_producer_id:
            try:
                fresh = await self._producer_ids.next()
            except CoordinatorLoadInProgress as error:
                logger.warning("%r: no producer id for its next transaction yet: %s", effect.transactional_id, error)
                return False
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

    def _write_here(
        self, shard: TransactionShardOnLog, effect: SendMarkers, partitions: Iterable[TopicPartition], attempt: _Attempt
    ) -> _Attempt:
        """Write into the partitions that this broker leads, and find out who leads the others."""
        for key in partitions:
            partition = self._partitions.find(*key)
            if partition is not None and partition.leader is not None:
                self._write(partition, effect, attempt)
                continue
            leader = leader_of(self._metadata.image, *key)
            if leader is None:
                # The topic is gone, and with it what was written; but an image older than this coordinator cannot tell.
                if not knows_election(self._metadata.image, shard.log.partition, effect.coordinator_epoch):
                    attempt.left.add(key)
            elif leader in (NO_LEADER, self._metadata.node_id):
                attempt.left.add(key)
            else:
                attempt.elsewhere.setdefault(leader, set()).add(key)
        return attempt

    def _write(self, partition: Partition, effect: SendMarkers, attempt: _Attempt) -> None:
        key = (partition.topic, partition.index)
        try:
            partition.check_in_sync()
            partition.append_marker(
                *effect.producer,
                effect.coordinator_epoch,
                is_commit=effect.is_commit,
                transaction_version=effect.transaction_version,
                now_ms=self._clocks.now_ms(),
            )
        except (InvalidProducerEpoch, TransactionCoordinatorFenced) as error:
            logger.warning("%s-%d takes no marker of %s: %s", *key, effect.transactional_id, error)
        except (StorageError, NotLeaderOrFollower, NotEnoughReplicas) as error:
            logger.debug("%s-%d cannot take a marker now: %s", *key, error)
            attempt.left.add(key)
        except Exception as error:
            self._partitions.failed(*key, error)
            attempt.left.add(key)
        else:
            self.written += 1
            if not partition.is_committed():
                attempt.uncommitted.append((partition, partition.commit_point()))

    async def close(self) -> None:
        """End what is under way; the next start takes it up again."""
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
        await self._remote.close()
