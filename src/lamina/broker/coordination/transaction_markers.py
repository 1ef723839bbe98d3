"""The markers that end transactions: written into every partition that is still there, until each has its own.

Owns what is under way; tells the shard when all markers of a transaction are committed. Must not know what
a transaction's states mean.
"""

import asyncio
import logging
from collections.abc import Iterable

from lamina.broker.coordination.producer_ids import ProducerIdBlock
from lamina.broker.coordination.shard import Shard
from lamina.broker.counters import Counters, Place
from lamina.broker.partitions.commits import all_committed
from lamina.broker.partitions.partition import Partition
from lamina.broker.partitions.partition_set import Partitions
from lamina.clocks import Clocks
from lamina.coordinators.decision import SendMarkers
from lamina.coordinators.records.transaction_records import TransactionRecord
from lamina.coordinators.transactions import TransactionShard
from lamina.errors import InvalidProducerEpoch, NotLeaderOrFollower, StorageError, TransactionCoordinatorFenced
from lamina.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 0.1
_RETRY_MAX_SECONDS = 5.0
_PARTITIONS_AT_A_TIME = 64

TransactionShardOnLog = Shard[TransactionRecord, TransactionShard]


class TransactionMarkers:
    def __init__(
        self,
        producer_ids: ProducerIdBlock,
        partitions: Partitions,
        counters: Counters,
        clocks: Clocks,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._producer_ids = producer_ids
        self._partitions = partitions
        self._counters = counters
        self._clocks = clocks
        self._loop = loop
        self._sending: dict[asyncio.Task[None], SendMarkers] = {}
        self.written = 0

    @property
    def pending(self) -> int:
        """Partitions of transactions whose markers could not be written at once."""
        return sum(len(effect.partitions) for effect in self._sending.values())

    def send(self, shard: TransactionShardOnLog, effect: SendMarkers) -> None:
        left: set[TopicPartition] = set(effect.partitions)
        uncommitted: list[Partition] = []
        if len(left) <= _PARTITIONS_AT_A_TIME:
            left, uncommitted = self._write(left, effect)
        is_written = not left and not uncommitted and not effect.needs_producer_id
        if is_written and self._complete(shard, effect, None):
            # As nearly always: the producer may begin its next transaction at once.
            return
        task = self._loop.create_task(self._send(shard, effect, left, uncommitted))
        self._sending[task] = effect
        task.add_done_callback(lambda done: self._sending.pop(done, None))

    async def _send(
        self, shard: TransactionShardOnLog, effect: SendMarkers, left: set[TopicPartition], uncommitted: list[Partition]
    ) -> None:
        """Until every partition has its marker, committed, and the transaction is complete."""
        machine, wait_seconds = shard.machine, _RETRY_SECONDS
        # A machine that was loaded again has sent its markers again, or another broker does.
        while shard.machine is machine:
            left |= (await all_committed(uncommitted, self._clocks)).keys()
            waiting, left, uncommitted = sorted(left), set(), []
            for start in range(0, len(waiting), _PARTITIONS_AT_A_TIME):
                failed, more = self._write(waiting[start : start + _PARTITIONS_AT_A_TIME], effect)
                left |= failed
                uncommitted += more
                await asyncio.sleep(0)
            if uncommitted and not left:
                continue
            if not left and await self._complete_with_producer_id(shard, machine, effect):
                return
            await asyncio.sleep(wait_seconds)
            wait_seconds = min(2 * wait_seconds, _RETRY_MAX_SECONDS)

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

    def _write(
        self, partitions: Iterable[TopicPartition], effect: SendMarkers
    ) -> tuple[set[TopicPartition], list[Partition]]:
        """Those that could not take their marker, and those where it is not committed yet."""
        left: set[TopicPartition] = set()
        uncommitted: list[Partition] = []
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
            except (StorageError, NotLeaderOrFollower) as error:
                logger.debug("%s-%d cannot take a marker now: %s", *key, error)
                left.add(key)
            except Exception as error:
                self._partitions.failed(*key, error)
                left.add(key)
            else:
                self.written += 1
                if not partition.is_committed():
                    uncommitted.append(partition)
        return left, uncommitted

    async def close(self) -> None:
        """End what is under way; the next start takes it up again."""
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
