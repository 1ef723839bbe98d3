"""One partition as this broker serves it: its role, its high watermark, and who waits for it.

Owns the role that the metadata gives this broker here, the high watermark, and whoever waits for the partition: fetches
that are parked until something changes, records to be committed or deleted on all replicas. The last stable offset
follows from the high watermark and the log's open transactions. It leads, it follows, or it has no role: then it is
open and serves no client, because no leader is elected. Must not know requests or other partitions.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple
from uuid import UUID

from lamina.broker.counters import TopicCounters
from lamina.broker.partitions.batch_rules import rules_of
from lamina.broker.partitions.cluster import Cluster
from lamina.broker.partitions.follower import Follower, followed_high_watermark, followed_log_start
from lamina.broker.partitions.free_space import FreeSpace
from lamina.broker.partitions.leader import InSyncProposal, Leader
from lamina.broker.partitions.offset_waiters import OffsetWaiters, Waiter
from lamina.broker.partitions.parked_fetch import Parked
from lamina.broker.partitions.parked_readers import ParkedReaders
from lamina.broker.partitions.uncommitted import UncommittedBytes
from lamina.clocks import Clocks
from lamina.errors import (
    FencedLeaderEpoch,
    KafkaError,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    StorageError,
    UnknownLeaderEpoch,
)
from lamina.image.topic import Partition as PartitionState
from lamina.log.flushing import Flusher
from lamina.log.partition_log import Appended, PartitionLog
from lamina.log.producer_states import FIRST_WITH_EPOCH_BUMP, Origin, VerificationGuard
from lamina.records.batch import NO_LEADER_EPOCH, read_header, stamp_log_append_time, stamp_max_timestamp
from lamina.records.marker import ControlType, build_marker
from lamina.records.prepare import PreparedBatch
from lamina.records.validate import BatchRules
from lamina.settings.log_config import LogConfig
from lamina.wire.fetch_request import READ_COMMITTED


class CommitPoint(NamedTuple):
    """Up to where something has to be committed, and under which leadership it was written.

    Whoever waits between the append and the wait for its commit takes it in the turn of the append: what an offset
    means later is another record, if another broker has led meanwhile (R99).
    """

    end_offset: int
    leadership: int


class Partition:
    __slots__ = (
        "_clocks",
        "_cluster",
        "_commit_waiters",
        "_deletion_waiters",
        "_flusher",
        "_followers",
        "_readers",
        "_rules",
        "_uncommitted",
        "appended_bytes",
        "counters",
        "follower",
        "free_space",
        "grown_bytes",
        "high_watermark",
        "index",
        "is_throttled_as_follower",
        "is_throttled_as_leader",
        "leader",
        "leadership",
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
        cluster: Cluster,
        clocks: Clocks,
    ) -> None:
        self.topic = log.topic
        self.index = log.partition
        self.topic_id = topic_id
        self.log = log
        self.leader: Leader | None = None
        """The role of this broker; ``None`` while it does not lead the partition."""
        self.follower: Follower | None = None
        """Its role while another broker leads; never both."""
        self.counters = counters
        """Of the whole topic."""
        self.high_watermark = log.checkpointed_high_watermark
        self.grown_bytes = 0
        """How many bytes have come below the high watermark since the partition was opened."""
        self.appended_bytes = 0
        """How many bytes were appended while there were other replicas."""
        self.free_space = free_space
        self.on_marker: Callable[[int, int, bool], None] | None = None
        """Told of each marker once it is in the log: producer id, its epoch, and whether it commits."""
        log.producers.verifies_transactions = True
        self._flusher = flusher
        self._cluster = cluster
        self._clocks = clocks
        self._readers = ParkedReaders()
        """Those of what is committed."""
        self._followers = ParkedReaders()
        """They read all that is appended."""
        self._uncommitted = UncommittedBytes()
        name = log.name
        self._commit_waiters = OffsetWaiters(name, flusher.due)
        """Who waits until the high watermark reaches an offset."""
        self._deletion_waiters = OffsetWaiters(name, flusher.due)
        """Who waits until the low watermark reaches an offset."""
        self.leadership = 0
        """Another number whenever this broker may have stopped leading: what an offset meant before, it may not mean
        now (R99)."""
        self.configure(log.config, max_decompressed_bytes)

    def configure(self, config: LogConfig, max_decompressed_bytes: int) -> None:
        """Take over changed topic settings; the next append goes by them."""
        self.log.configure(config)
        self._rules = rules_of(config, max_decompressed_bytes)
        replica = (self.index, self._cluster.node_id)
        self.is_throttled_as_leader = replica in config.throttled_leaders
        self.is_throttled_as_follower = replica in config.throttled_followers
        if self.leader is not None:
            # Fewer replicas in sync may be enough now.
            self._advance_replicated(self.leader, 0)

    def go_on_in(self, log: PartitionLog, flusher: Flusher, free_space: FreeSpace) -> None:
        """Go on with a copy of the log that ends where it ends, and is in another log directory."""
        before = self._flusher
        self.log, self._flusher, self.free_space = log, flusher, free_space
        flusher.take_waiters_of(before)

    @property
    def rules(self) -> BatchRules:
        """What a client's batch has to obey here."""
        return self._rules

    # Role

    def lead(self, state: PartitionState) -> None:
        """Take the role that the metadata gives, or go on in it with another epoch, replicas or in-sync set."""
        leader, log = self.leader, self.log
        if leader is not None and leader.epoch == state.leader_epoch:
            leader.update(state)
        else:
            # Between two epochs that follow each other no other broker has led.
            if leader is not None and leader.epoch + 1 != state.leader_epoch:
                self.resign()
            log.begin_epoch(state.leader_epoch)
            self.follower = None
            self.leader = Leader(
                self._cluster.node_id,
                state,
                log.log_end_offset,
                self._cluster.lag_time_max_ms,
                partial(self._cluster.broker_epoch_of, topic=self.topic, index=self.index),
                self._clocks.monotonic_ms(),
                previous=self.leader,
            )
        self._advance_replicated(self.require_leader(), 0)
        self._tell_deleted()
        self._followers.look_again()

    def follow(self, follower: Follower) -> None:
        """Follow another broker, or the same one in another epoch."""
        if self.leader is not None:
            self.resign()
        self.follower = follower

    def resign(self) -> None:
        """Give the role up: another broker leads, or none does. Whoever waits here is told to ask again."""
        self.leader = self.follower = None
        self.leadership += 1
        self._uncommitted.clear()
        self.release_all()

    def leads_since(self, leadership: int) -> bool:
        """Whether this broker leads, and no other can have led since ``leadership`` had this number (R99)."""
        return self.leader is not None and self.leadership == leadership

    @property
    def leader_epoch(self) -> int:
        """The epoch under which this broker leads; raises NOT_LEADER_OR_FOLLOWER where it does not."""
        return self.require_leader().epoch

    @property
    def epoch(self) -> int:
        """The epoch under which this broker leads or follows; raises NOT_LEADER_OR_FOLLOWER where it does neither."""
        role = self.leader or self.follower
        if role is None:
            raise self._not_leader()
        return role.epoch

    @property
    def is_replicated(self) -> bool:
        """Whether this broker leads others, for which a commit has to wait."""
        return self.leader is not None and not self.leader.is_alone

    def require_leader(self) -> Leader:
        if self.leader is None:
            raise self._not_leader()
        return self.leader

    def _not_leader(self) -> NotLeaderOrFollower:
        return NotLeaderOrFollower(f"this broker does not lead {self.log.name}")

    # Writing

    def check_in_sync(self) -> None:
        """Whether acks=all may be promised."""
        self.require_leader().check_in_sync(self.log.name, self.log.config.min_insync_replicas)

    def check_lease(self) -> None:
        """Whether this broker may acknowledge alone: not once another one may lead, where the record could be lost."""
        self.require_leader()
        if not self._cluster.lease.is_proven():
            raise NotLeaderOrFollower(f"this broker cannot prove that it still leads {self.log.name}")

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
        self._readers.look_again()
        if self.on_marker is not None:
            self.on_marker(producer_id, producer_epoch, is_commit)

    # High watermark

    def _advance(self, size_bytes: int) -> None:
        """Something was appended: move the high watermark to what every in-sync replica has."""
        leader, log = self.require_leader(), self.log
        if not leader.is_alone:
            self._advance_replicated(leader, size_bytes)
            return
        self.high_watermark = high_watermark = log.log_end_offset
        self.grown_bytes += size_bytes
        log.producers.high_watermark_moved(high_watermark)
        self._readers.changed(size_bytes)

    def _advance_replicated(self, leader: Leader, size_bytes: int) -> None:
        log = self.log
        if size_bytes:
            self.appended_bytes += size_bytes
            self._uncommitted.add(log.log_end_offset, size_bytes)
            self._followers.changed(size_bytes)
        now_ms = self._clocks.monotonic_ms()
        reached = leader.high_watermark(log.log_end_offset, log.config.min_insync_replicas, now_ms)
        if reached is not None and reached > self.high_watermark:
            self._move_high_watermark(reached)
            self._tell_committed()

    def _move_high_watermark(self, offset: int) -> None:
        self.high_watermark = offset
        size_bytes = self._uncommitted.take_up_to(offset)
        self.grown_bytes += size_bytes
        has_ended = self.log.producers.high_watermark_moved(offset)
        self._readers.changed(size_bytes)
        if has_ended:
            self._readers.look_again()
        # Something else than the end of the log has changed that followers are told.
        self._followers.look_again()

    def _tell_committed(self) -> None:
        if not self._commit_waiters:
            return
        error: KafkaError | None = None
        if not self.require_leader().is_promise_kept(self.log.config.min_insync_replicas):
            error = self._too_few_after_append()
        self._commit_waiters.reached(self.high_watermark, error)

    def _too_few_after_append(self) -> NotEnoughReplicasAfterAppend:
        return NotEnoughReplicasAfterAppend(f"{self.log.name} lost in-sync replicas while it was written to")

    # Followers and the in-sync set

    def check_replica(self, replica_id: int, broker_epoch: int, leader_epoch: int) -> None:
        """Whether a broker may fetch from here as a follower (R4)."""
        self.require_leader().check_replica(self.log.name, replica_id, broker_epoch, leader_epoch)

    def replica_fetched(self, replica_id: int, broker_epoch: int, fetch_offset: int, log_start_offset: int) -> None:
        """A follower has fetched, and was neither refused nor told where it diverges (R6)."""
        leader, log, now_ms = self.require_leader(), self.log, self._clocks.monotonic_ms()
        is_moved = leader.fetched(replica_id, broker_epoch, fetch_offset, log_start_offset, log.log_end_offset, now_ms)
        if replica_id not in leader.in_sync and self._may_propose():
            min_insync_replicas = log.config.min_insync_replicas
            self._propose(
                leader.propose_expansion(
                    replica_id, self.high_watermark, log.log_end_offset, min_insync_replicas, now_ms
                )
            )
        if is_moved:
            self._advance(0)
        self._tell_deleted()

    def is_adding(self, replica_id: int) -> bool:
        """Whether a follower was not a replica before the reassignment that is under way."""
        return self.leader is not None and replica_id in self.leader.adding

    def is_in_sync_at(self, replica_id: int, offset: int) -> bool:
        """Whether a replica is in sync and has all of the log, which ends at ``offset``."""
        leader = self.leader
        return leader is not None and offset == self.log.log_end_offset and replica_id in leader.in_sync

    def replica_stayed(self, replica_id: int, until_ms: int) -> None:
        """A follower that had all of the log fetched again and again until then, while it was the same."""
        if self.leader is not None:
            self.leader.stayed(replica_id, until_ms)

    def shrink_in_sync(self) -> None:
        """Ask to drop in-sync followers that are behind. To be called every half of ``replica.lag.time.max.ms``.

        One that was about to join and has fallen behind holds the high watermark back no longer (R11).
        """
        leader = self.leader
        if leader is None or self.log.failure is not None:
            return
        if self._may_propose():
            self._propose(leader.propose_shrinking(self.log.log_end_offset, self._clocks.monotonic_ms()))
        if not leader.is_alone:
            self._advance_replicated(leader, 0)

    def _may_propose(self) -> bool:
        return self._cluster.change_in_sync is not None and self._cluster.lease.is_proven()

    def _propose(self, proposal: InSyncProposal | None) -> None:
        if proposal is not None and self._cluster.change_in_sync is not None:
            self._cluster.change_in_sync(self, proposal)

    def in_sync_committed(
        self, proposal: InSyncProposal, in_sync: Iterable[int], leader_epoch: int, partition_epoch: int
    ) -> int:
        """The controller has stored a change: what is stored now may let the high watermark move (R13).

        Returns by how many members the set has grown, where that was news.
        """
        leader = self.leader
        if leader is None:
            return 0
        before = len(leader.in_sync)
        if leader.committed(proposal, in_sync, leader_epoch, partition_epoch):
            self._advance(0)
        return len(leader.in_sync) - before

    def in_sync_refused(self, proposal: InSyncProposal, error_code: int) -> bool:
        """The controller has not stored a change. Returns whether it has to be asked again.

        Where it is given up nobody waits any more for who was to join by it (R13).
        """
        leader = self.leader
        if leader is None:
            return False
        is_wanted = leader.refused(proposal, error_code)
        self._advance(0)
        return is_wanted

    def brokers_changed(self) -> None:
        """Other brokers are there than before: replicas that went are waited for no longer (R11, R17)."""
        if self.is_replicated:
            self._advance(0)
            self._tell_deleted()

    # Following

    def append_as_follower(self, batches: memoryview, now_ms: int) -> None:
        """Append what the leader sent, CRCs and epochs checked.

        Raises CORRUPT_MESSAGE for what does not follow, and POLICY_VIOLATION where the disk is nearly full.
        """
        self.free_space.check(len(batches))
        self.log.append_as_follower(batches, now_ms)
        self.free_space.take(len(batches))
        self._uncommitted.add(self.log.log_end_offset, len(batches))

    def take_watermarks(self, leader_high_watermark: int, leader_log_start_offset: int) -> None:
        """Go by the leader's high watermark and log start, as far as this log reaches (R15, R17).

        The log start comes second: it is never above the high watermark.
        """
        self._follow_high_watermark(followed_high_watermark(self.log, leader_high_watermark))
        log_start_offset = followed_log_start(self.log, self.high_watermark, leader_log_start_offset)
        if log_start_offset > self.log.log_start_offset:
            self.log.advance_log_start(log_start_offset)

    def was_truncated(self) -> None:
        """The log's end was cut, or it has started anew: nothing outside of it is committed (R16, R89)."""
        self._uncommitted.clear()
        self._follow_high_watermark(followed_high_watermark(self.log, self.high_watermark))
        # The producers were found again in the log, which does not know which ended transactions are replicated.
        self.log.producers.high_watermark_moved(self.high_watermark)

    def _follow_high_watermark(self, high_watermark: int) -> None:
        """It may go down, where nobody waits for it."""
        if high_watermark > self.high_watermark:
            self._move_high_watermark(high_watermark)
        self.high_watermark = high_watermark

    # Acknowledging

    def is_flushed(self) -> bool:
        """Whether everything in the log is on disk as far as ``flush.messages`` wants it."""
        log = self.log
        return log.log_end_offset - log.recovery_point < log.config.flush_messages

    def is_committed(self) -> bool:
        """Whether everything in the log may be acknowledged to acks=all: flushed, and on every in-sync replica."""
        return self.high_watermark == self.log.log_end_offset and self.is_flushed()

    def when_flushed(self, waiter: Waiter) -> None:
        """Tell ``waiter`` when everything that is in the log now is flushed; at once where it already is."""
        if self.log.failure is None and self.is_flushed():
            waiter(None)
        else:
            self._flusher.flush_to(self.log.log_end_offset, waiter)

    def commit_point(self, end_offset: int | None = None) -> CommitPoint:
        """For records below ``end_offset`` that were appended in this turn; without it, for all that is in the log."""
        return CommitPoint(self.log.log_end_offset if end_offset is None else end_offset, self.leadership)

    def when_committed(self, waiter: Waiter, point: CommitPoint | None = None) -> None:
        """Tell ``waiter`` when everything up to ``point`` is committed; at once where it already is.

        Without it, everything that is in the log now. What this broker reads as committed once it has lost the role may
        be records of another leader (R99): then nothing is promised.
        """
        offset, leadership = point or self.commit_point()

        def flushed(error: KafkaError | None) -> None:
            if error is not None:
                waiter(error)
            elif not self.leads_since(leadership):
                waiter(self._not_leader())
            elif self.high_watermark < offset:
                self._commit_waiters.add(offset, waiter)
            elif self.require_leader().is_promise_kept(self.log.config.min_insync_replicas):
                self._commit_waiters.tell(waiter, None)
            else:
                self._commit_waiters.tell(waiter, self._too_few_after_append())

        self.when_flushed(flushed)

    def forget_waiter(self, waiter: Waiter) -> None:
        """One that waited long enough for other replicas is not told any more."""
        self._commit_waiters.forget(waiter)
        self._deletion_waiters.forget(waiter)

    def flush_in_background(self) -> None:
        self._flusher.flush_to(self.log.log_end_offset)

    # Deleting

    @property
    def low_watermark(self) -> int:
        """Where the log starts on every replica that is online."""
        return self.require_leader().low_watermark(self.log.log_start_offset)

    def when_deleted(self, offset: int, waiter: Waiter) -> None:
        """Tell ``waiter`` when no replica that is online starts below ``offset``; at once where that is so."""
        if self.leader is None:
            waiter(self._not_leader())
            return
        self._deletion_waiters.add(offset, waiter)
        self._tell_deleted()
        self._followers.look_again()

    def _tell_deleted(self) -> None:
        if self._deletion_waiters:
            self._deletion_waiters.reached(self.low_watermark, None)

    # Reading

    def check_epoch(self, epoch: int) -> None:
        """A client that knows another epoch has to refresh its metadata, or to wait until we know it too."""
        known = self.epoch
        if epoch in (NO_LEADER_EPOCH, known):
            return
        if epoch < known:
            raise FencedLeaderEpoch(f"{self.log.name} is at leader epoch {known}, the client at {epoch}")
        raise UnknownLeaderEpoch(f"{self.log.name} is at leader epoch {known}, the client at {epoch}")

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

    def check_served_here(self) -> None:
        """Before consumers and replicas read. A log that has failed is a storage error, until others lead.

        Then it is NOT_LEADER_OR_FOLLOWER: on that alone some clients, such as aiokafka, ask at once who leads.
        """
        if self.log.failure is not None:
            self.require_leader()
            raise StorageError(self.log.failure)

    # Waiting

    @property
    def may_grow(self) -> bool:
        """Whether it is worth waiting here for more."""
        return (self.leader is not None or self.follower is not None) and self.log.failure is None

    def park(self, parked: Parked, *, is_replica: bool = False) -> None:
        """Have it told of all that is appended, if a follower waits, or else of what is committed."""
        (self._followers if is_replica else self._readers).add(parked)

    def unpark(self, parked: Parked) -> None:
        self._readers.remove(parked)
        self._followers.remove(parked)

    def release_all(self) -> None:
        """Wake all waiters: the role is lost, the partition goes away, or the broker stops."""
        failure = self.log.failure
        error = self._not_leader() if failure is None else StorageError(failure)
        self._commit_waiters.fail(error)
        self._deletion_waiters.fail(error)
        self._readers.stop_waiting()
        self._followers.stop_waiting()
