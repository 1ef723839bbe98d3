"""One partition as this broker serves it: its role, its high watermark, and who waits for it.

Owns the role that the metadata gives this broker here, the high watermark, and the fetches that are parked until
something changes. The last stable offset follows from the high watermark and the log's open transactions. A partition
without a role is open and serves no client: no leader is elected yet. Must not know requests or other partitions.
"""

from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from lamina.broker.counters import TopicCounters
from lamina.broker.partitions.free_space import FreeSpace
from lamina.broker.partitions.leader import Leader
from lamina.errors import (
    FencedLeaderEpoch,
    KafkaError,
    NotLeaderOrFollower,
    StorageError,
    UnknownLeaderEpoch,
)
from lamina.log.epochs import EpochStart
from lamina.log.flushing import Flusher
from lamina.log.partition_log import Appended, PartitionLog
from lamina.log.producer_states import FIRST_WITH_EPOCH_BUMP, Origin, VerificationGuard
from lamina.records.batch import Codec, read_header, stamp_log_append_time, stamp_max_timestamp
from lamina.records.marker import ControlType, build_marker
from lamina.records.prepare import PreparedBatch
from lamina.records.validate import BatchRules
from lamina.settings.log_config import LogConfig

CommitWaiter = Callable[[KafkaError | None], None]
"""Told once, with the reason where nothing can be promised."""

NO_EPOCH = -1
READ_COMMITTED = 1


class Parked(Protocol):
    """Whoever waits for a partition to change."""

    def changed(self, size_bytes: int) -> None:
        """More bytes may be read now."""

    def look_again(self) -> None:
        """Readers of committed records may see more, and how much is not counted: a transaction has ended."""

    def stop_waiting(self) -> None:
        """What was waited for will not come: the partition is gone or its broker stops."""


class Partition:
    __slots__ = (
        "_flusher",
        "_parked",
        "_replicating",
        "_rules",
        "counters",
        "free_space",
        "grown_bytes",
        "high_watermark",
        "index",
        "leader",
        "log",
        "on_marker",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        log: PartitionLog,
        topic_id: UUID,
        flusher: Flusher,
        max_decompressed_bytes: int,
        counters: TopicCounters,
        free_space: FreeSpace,
    ) -> None:
        self.topic = log.topic
        self.index = log.partition
        self.topic_id = topic_id
        self.log = log
        self.leader: Leader | None = None
        """The role of this broker; ``None`` while it does not lead the partition."""
        self.counters = counters
        """Of the whole topic."""
        self.high_watermark = log.checkpointed_high_watermark
        self.grown_bytes = 0
        """How many bytes have come below the high watermark since the partition was opened."""
        self.free_space = free_space
        self.on_marker: Callable[[int, int, bool], None] | None = None
        """Told of each marker once it is in the log: producer id, its epoch, and whether it commits."""
        log.producers.verifies_transactions = True
        self._flusher = flusher
        self._parked: set[Parked] = set()
        self._replicating: list[tuple[int, CommitWaiter]] = []
        """Who waits until the high watermark reaches an offset."""
        self.configure(log.config, max_decompressed_bytes)

    def configure(self, config: LogConfig, max_decompressed_bytes: int) -> None:
        """Take over changed topic settings; the next append goes by them."""
        self.log.configure(config)
        codec, codec_level = _compression(config)
        self._rules = BatchRules(
            max_message_bytes=config.max_message_bytes,
            max_decompressed_bytes=max_decompressed_bytes,
            is_compacted=config.compact,
            is_log_append_time=config.is_log_append_time,
            timestamp_before_max_ms=config.timestamp_before_max_ms,
            timestamp_after_max_ms=config.timestamp_after_max_ms,
            codec=codec,
            codec_level=codec_level,
        )

    @property
    def rules(self) -> BatchRules:
        """What a client's batch has to obey here."""
        return self._rules

    # Role

    def lead(self, leader: Leader) -> None:
        """Take the role, or go on in it with another epoch or in-sync set."""
        self.leader = leader
        self._advance(0)

    def resign(self) -> None:
        """Give the role up: another broker leads, or none does. Whoever waits here is told to ask again."""
        self.leader = None
        replicating, self._replicating = self._replicating, []
        for _, waiter in replicating:
            waiter(NotLeaderOrFollower(f"this broker does not lead {self.log.name} any more"))
        self.release_all()

    @property
    def leader_epoch(self) -> int:
        """The epoch under which this broker leads; raises NOT_LEADER_OR_FOLLOWER where it does not."""
        return self.require_leader().epoch

    def require_leader(self) -> Leader:
        if self.leader is None:
            raise NotLeaderOrFollower(f"this broker does not lead {self.log.name}")
        return self.leader

    # Writing

    def check_in_sync(self) -> None:
        self.require_leader().check_in_sync(self.log.name, self.log.config.min_insync_replicas)

    def append(self, prepared: PreparedBatch, now_ms: int, verification: VerificationGuard | None = None) -> Appended:
        """Append a batch that was prepared by ``rules`` as the leader, stamped with this topic's idea of time.

        One that begins a transaction needs its verification: ``log.producers`` says which, and whether.
        """
        batch, validated = prepared
        header = validated.header
        if self._rules.is_log_append_time:
            stamp_log_append_time(batch, 0, now_ms)
            header = read_header(batch)
        elif header.max_timestamp != validated.max_timestamp:
            stamp_max_timestamp(batch, 0, validated.max_timestamp)
            header = read_header(batch)
        appended = self.log.append(batch, header, self.leader_epoch, now_ms, Origin.CLIENT, verification)
        if not appended.is_duplicate:
            self.free_space.take(len(batch))
            self._advance(len(batch))
        return appended

    def append_own(self, batch: bytearray, now_ms: int, verification: VerificationGuard | None = None) -> Appended:
        """Append a coordinator's records. Nobody has to check them; their producer's epoch counts, sequences do not."""
        header = read_header(batch)
        appended = self.log.append(batch, header, self.leader_epoch, now_ms, Origin.COORDINATOR, verification)
        self._advance(len(batch))
        return appended

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        *,
        is_commit: bool,
        transaction_version: int,
        now_ms: int,
    ) -> None:
        """End the producer's transaction here. May be said again, and without one being open.

        Raises INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED or KAFKA_STORAGE_ERROR.
        """
        batch = build_marker(
            ControlType.COMMIT if is_commit else ControlType.ABORT,
            offset=0,
            timestamp_ms=now_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
        )
        header, log = read_header(batch), self.log
        if transaction_version >= FIRST_WITH_EPOCH_BUMP and log.producers.has_ended(producer_id, producer_epoch):
            log.producers.check_marker(header, coordinator_epoch, transaction_version)
            return
        log.append(
            batch, header, self.leader_epoch, now_ms, Origin.COORDINATOR, transaction_version=transaction_version
        )
        self._advance(len(batch))
        for parked in tuple(self._parked):
            parked.look_again()
        if self.on_marker is not None:
            self.on_marker(producer_id, producer_epoch, is_commit)

    def _advance(self, size_bytes: int) -> None:
        """Move the high watermark to what every in-sync replica has: to the end, if this broker is the only one."""
        if len(self.require_leader().in_sync) > 1:
            return
        log = self.log
        self.high_watermark = high_watermark = log.log_end_offset
        self.grown_bytes += size_bytes
        log.producers.high_watermark_moved(high_watermark)
        if self._replicating:
            reached = [waiter for offset, waiter in self._replicating if offset <= high_watermark]
            self._replicating = [one for one in self._replicating if one[0] > high_watermark]
            for waiter in reached:
                waiter(None)
        if self._parked:
            for parked in tuple(self._parked):
                parked.changed(size_bytes)

    # Acknowledging

    def is_flushed(self) -> bool:
        """Whether everything in the log is on disk as far as ``flush.messages`` wants it."""
        log = self.log
        return log.log_end_offset - log.recovery_point < log.config.flush_messages

    def is_committed(self) -> bool:
        """Whether everything in the log may be acknowledged to acks=all: flushed, and on every in-sync replica."""
        return self.high_watermark == self.log.log_end_offset and self.is_flushed()

    def when_flushed(self, waiter: CommitWaiter) -> None:
        """Tell ``waiter`` when everything that is in the log now is flushed; at once where it already is."""
        if self.log.failure is None and self.is_flushed():
            waiter(None)
        else:
            self._flusher.flush_to(self.log.log_end_offset, waiter)

    def when_committed(self, waiter: CommitWaiter) -> None:
        """Tell ``waiter`` when everything that is in the log now is committed; at once where it already is."""
        offset = self.log.log_end_offset

        def flushed(error: KafkaError | None) -> None:
            if error is not None or self.high_watermark >= offset:
                waiter(error)
            elif self.leader is None:
                waiter(NotLeaderOrFollower(f"this broker does not lead {self.log.name} any more"))
            else:
                self._replicating.append((offset, waiter))

        self.when_flushed(flushed)

    def flush_in_background(self) -> None:
        self._flusher.flush_to(self.log.log_end_offset)

    # Reading

    def check_epoch(self, epoch: int) -> None:
        """A client that knows another epoch has to refresh its metadata, or to wait until we know it too."""
        known = self.leader_epoch
        if epoch in (NO_EPOCH, known):
            return
        if epoch < known:
            raise FencedLeaderEpoch(f"{self.log.name} is at leader epoch {known}, the client at {epoch}")
        raise UnknownLeaderEpoch(f"{self.log.name} is at leader epoch {known}, the client at {epoch}")

    def end_of_epoch(self, epoch: int) -> EpochStart:
        """The largest epoch at or below this one, and where it ends; -1 and -1 for one that has not begun.

        The log notes an epoch with its first batch. One in which nothing was written ends where the log does, so
        that a client which was at the end before a restart finds that nothing was lost.
        """
        log = self.log
        if not log.epochs.latest < epoch <= self.leader_epoch:
            return log.epochs.end_of(epoch, log.log_end_offset)
        known = epoch if epoch == self.leader_epoch or not log.epochs.entries else log.epochs.latest
        return EpochStart(known, log.log_end_offset)

    @property
    def last_stable_offset(self) -> int:
        """What readers of committed records may see; never below the log start, whatever was deleted there."""
        first_unstable = self.log.producers.first_unstable_offset()
        if first_unstable is None:
            return self.high_watermark
        return max(min(first_unstable, self.high_watermark), self.log.log_start_offset)

    def bound(self, isolation_level: int) -> int:
        """The offset that a consumer may not reach."""
        return self.last_stable_offset if isolation_level == READ_COMMITTED else self.high_watermark

    def check_online(self) -> None:
        if self.log.failure is not None:
            raise StorageError(self.log.failure)

    # Waiting

    @property
    def may_grow(self) -> bool:
        """Whether it is worth waiting here for more."""
        return self.leader is not None and self.log.failure is None

    def park(self, parked: Parked) -> None:
        self._parked.add(parked)

    def unpark(self, parked: Parked) -> None:
        self._parked.discard(parked)

    def release_all(self) -> None:
        """Wake all waiters: the partition goes away, or the broker stops."""
        for parked in tuple(self._parked):
            parked.stop_waiting()


def _compression(config: LogConfig) -> tuple[Codec | None, int | None]:
    """The codec that batches are stored in and its level; no codec to keep the producer's own."""
    match config.compression_type:
        case "producer":
            return None, None
        case "uncompressed":
            return Codec.NONE, None
        case "gzip":
            return Codec.GZIP, config.compression_gzip_level
        case "lz4":
            return Codec.LZ4, config.compression_lz4_level
        case "zstd":
            return Codec.ZSTD, config.compression_zstd_level
        case snappy:
            return Codec[snappy.upper()], None
