"""The log of a coordinator's shard: one partition of an internal topic, in one term of this broker as its leader.

Owns how decisions become batches, how a log is read back, and that nothing is written, nor taken for committed,
after that term. Must not know what the records say.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from lamina.broker.partitions.offset_waiters import Waiter
from lamina.broker.partitions.partition import Partition
from lamina.broker.threads import Threads
from lamina.coordinators.decision import Producer
from lamina.coordinators.replaying import Decode, History
from lamina.errors import CorruptMessage, KafkaError, MessageTooLarge, NotLeaderOrFollower, StorageError
from lamina.log.producer_states import VerificationGuard
from lamina.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Codec
from lamina.records.record import Record, build_batch

R = TypeVar("R")

_CHUNK_BYTES = 4 * 1024 * 1024

Encode = Callable[[R], tuple[bytes, bytes | None]]


@dataclass(frozen=True, slots=True)
class RecordFormat(Generic[R]):
    """How the records of a machine are written and read."""

    encode: Encode[R]
    decode: Decode[R]
    codec: Codec = Codec.NONE
    base_sequence: int = 0
    """What every batch says, with a producer or without: 0 by Kafka's group coordinator."""


class ShardLog(Generic[R]):
    def __init__(self, partition: Partition, record_format: RecordFormat[R], threads: Threads) -> None:
        self.partition = partition
        self.format = record_format
        self._threads = threads
        self.leader_epoch = partition.leader_epoch
        self._leadership = partition.leadership
        self._end_at_election = partition.log.log_end_offset

    @property
    def name(self) -> str:
        return self.partition.log.name

    # Term

    @property
    def is_active(self) -> bool:
        """Whether this broker leads, and no other has led since the term began."""
        return self.partition.leads_since(self._leadership)

    def goes_on(self) -> bool:
        """Whether this broker was elected again before anybody else; if so, this log is the new epoch's too."""
        if not self.is_active:
            return False
        self.leader_epoch = self.partition.leader_epoch
        return True

    def _no_more(self) -> NotLeaderOrFollower:
        return NotLeaderOrFollower(f"this broker does not lead {self.name} in epoch {self.leader_epoch} any more")

    # Writing

    def append(
        self,
        records: Sequence[R],
        producer: Producer | None,
        now_ms: int,
        verification: VerificationGuard | None = None,
        *,
        is_atomic: bool = True,
    ) -> None:
        """All records as one batch, or as more where that is allowed and one would be too large.

        Raises MessageTooLarge, NotEnoughReplicas or NotLeaderOrFollower before anything was written, or StorageError. A
        batch of a producer's raises its error too, before anything was written: INVALID_PRODUCER_EPOCH, or
        INVALID_TXN_STATE if it would begin a transaction and ``verification`` does not let it.
        """
        if not self.is_active:
            raise self._no_more()
        self.partition.check_in_sync()
        for batch in self._batches(records, producer, now_ms, is_atomic=is_atomic):
            self.partition.append_own(batch, now_ms, verification)

    def _batches(
        self, records: Sequence[R], producer: Producer | None, now_ms: int, *, is_atomic: bool
    ) -> list[bytearray]:
        encode = self.format.encode
        producer_id, producer_epoch = producer or (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        batch = build_batch(
            [Record(number, now_ms, *encode(record)) for number, record in enumerate(records)],
            codec=self.format.codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=self.format.base_sequence,
            is_transactional=producer is not None,
        )
        limit_bytes = self.partition.log.config.max_message_bytes
        if len(batch) <= limit_bytes:
            return [batch]
        if is_atomic or len(records) == 1:
            raise MessageTooLarge(f"{self.name} takes batches of {limit_bytes} bytes, this one has {len(batch)}")
        middle = len(records) // 2
        return [
            *self._batches(records[:middle], producer, now_ms, is_atomic=False),
            *self._batches(records[middle:], producer, now_ms, is_atomic=False),
        ]

    # Committing

    @property
    def is_taken_over(self) -> bool:
        """Whether all that was in the log at the election is committed: none of it can be lost any more."""
        return self.partition.high_watermark >= self._end_at_election

    @property
    def is_committed(self) -> bool:
        """Whether all that is in the log is committed, in this term."""
        partition = self.partition
        return self.is_active and partition.log.failure is None and partition.is_committed()

    def when_committed(self, waiter: Waiter) -> Callable[[], None]:
        """Tell ``waiter`` when all that is in the log now is committed, at once where it already is.

        What another leader replicates later counts for nothing: the waiter belongs to this term (R99). Returns what to
        call for it not to be told any more.
        """

        def committed(error: KafkaError | None) -> None:
            waiter(self._no_more() if error is None and not self.is_active else error)

        self.partition.when_committed(committed)
        return partial(self.partition.forget_waiter, committed)

    async def committed(self) -> KafkaError | None:
        """Wait for that. Returns why it will not be, if it will not."""
        told: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()
        forget = self.when_committed(lambda error: None if told.done() else told.set_result(error))
        try:
            return await told
        finally:
            forget()

    # Reading

    @property
    def start_offset(self) -> int:
        return self.partition.log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self.partition.log.log_end_offset

    async def read_from(self, offset: int) -> History:
        """Everything from there up to the log's end, read on threads. Raises StorageError, or CorruptMessage."""
        history = History()
        history.next_offset = offset
        while history.next_offset < self.end_offset:
            # Another one after a move to another log directory.
            log = self.partition.log
            lease = log.read(history.next_offset, _CHUNK_BYTES)
            if lease is None:
                # Compaction has left nothing up to the end.
                history.next_offset = log.log_end_offset
                break
            began = history.next_offset
            try:
                await self._threads.run_to_its_end(lambda lease=lease: history.feed(lease.read()))  # type: ignore[misc]
            except OSError as error:
                raise StorageError(f"{self.name} cannot be read: {error}") from error
            finally:
                lease.give_back()
            if history.next_offset <= began:
                raise CorruptMessage(f"{self.name} has no whole batch at offset {began}")
        return history
