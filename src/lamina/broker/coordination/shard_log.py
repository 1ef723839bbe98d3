"""The log of a coordinator's shard: one partition of an internal topic, written and read by this broker itself.

Owns how decisions become batches and how a log is read back. Must not know what the records say.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from lamina.broker.partitions.partition import Partition
from lamina.broker.threads import Threads
from lamina.coordinators.decision import Producer
from lamina.coordinators.replaying import Decode, History
from lamina.errors import CorruptMessage, MessageTooLarge, StorageError
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

    @property
    def name(self) -> str:
        return self.partition.log.name

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

        Raises MessageTooLarge before anything was written, or StorageError. A batch of a producer's raises its error
        too, before anything was written: INVALID_PRODUCER_EPOCH, or INVALID_TXN_STATE if it would begin a transaction
        and ``verification`` does not let it.
        """
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

    @property
    def start_offset(self) -> int:
        return self.partition.log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self.partition.log.log_end_offset

    async def read_from(self, offset: int) -> History:
        """Everything from there up to the log's end, read on threads. Raises StorageError, or CorruptMessage."""
        log = self.partition.log
        history = History()
        history.next_offset = offset
        while history.next_offset < log.log_end_offset:
            lease = log.read(history.next_offset, _CHUNK_BYTES)
            if lease is None:
                # Compaction has left nothing up to the end.
                history.next_offset = log.log_end_offset
                break
            began = history.next_offset
            try:
                await self._threads.run(lambda lease=lease: history.feed(lease.read()))  # type: ignore[misc]
            except OSError as error:
                raise StorageError(f"{self.name} cannot be read: {error}") from error
            finally:
                lease.give_back()
            if history.next_offset <= began:
                raise CorruptMessage(f"{self.name} has no whole batch at offset {began}")
        return history
