"""The role of a partition's leader on this broker, under one leader epoch.

Owns the in-sync set with the one change of it that may be under way, how far each follower has come, and what follows
from both: the high watermark, the low watermark, what acks=all may promise. Plain Python: offsets of the own log and
times, in monotonic milliseconds, are arguments. Must not know the log, nor how the controller is asked.

While a change is under way nobody knows which set is stored. So the high watermark waits for every member of either
one, the maximal set; what has to be promised before an append goes by the set that is known to be stored (R10, R93).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from lamina.broker.partitions.follower_progress import NEVER_MS, UNCHECKED_EPOCH, FollowerProgress
from lamina.errors import ErrorCode, NotEnoughReplicas, NotLeaderOrFollower, UnknownLeaderEpoch
from lamina.image.topic import Partition as PartitionState
from lamina.records.batch import NO_LEADER_EPOCH

BrokerEpochOf = Callable[[int], int | None]
"""The epoch of a broker's registration, if it can serve its replica of the partition (R44)."""

_TAKEN_BACK = frozenset((ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED))
_METADATA_WILL_TELL = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    )
)


@dataclass(frozen=True, slots=True, eq=False)
class InSyncProposal:
    """A change of the in-sync set that the controller is asked for. Each is an object of its own.

    A partition that recovers from an unclean election is recovered with the first that is stored (R46).
    """

    leader_epoch: int
    partition_epoch: int
    """The state that the change was decided on; the controller refuses it if that is not the stored one."""
    in_sync: Mapping[int, int]
    """The wanted members, each with the broker epoch under which it last fetched; -1 is not checked."""


class Leader:
    __slots__ = (
        "_broker_epoch_of",
        "_lag_time_max_ms",
        "adding",
        "epoch",
        "followers",
        "in_sync",
        "is_alone",
        "is_recovering",
        "maximal_in_sync",
        "node_id",
        "partition_epoch",
        "proposal",
        "replicas",
        "start_offset",
    )

    def __init__(
        self,
        node_id: int,
        state: PartitionState,
        start_offset: int,
        lag_time_max_ms: int,
        broker_epoch_of: BrokerEpochOf,
        now_ms: int,
        previous: "Leader | None" = None,
    ) -> None:
        """``start_offset`` is where the log ends now: whatever lies above it is written in this epoch.

        ``previous`` is the role of this broker in the epoch before, if it led then: what it knew of its followers still
        holds (R20). A new leader knows nothing: until an in-sync follower has fetched, the high watermark stands.
        """
        self.node_id = node_id
        self.epoch = state.leader_epoch
        self.start_offset = start_offset
        self.partition_epoch = state.partition_epoch
        self.is_recovering = state.is_recovering
        self.in_sync = self.maximal_in_sync = frozenset(state.isr)
        """Those that are known to be stored, and with them those that may be."""
        self.proposal: InSyncProposal | None = None
        self.followers: dict[int, FollowerProgress] = {}
        """All assigned replicas but this one."""
        self._lag_time_max_ms = lag_time_max_ms
        self._broker_epoch_of = broker_epoch_of
        self._assign(state)
        for replica_id in self.followers:
            since_ms = now_ms if replica_id in self.in_sync else NEVER_MS
            known = None if previous is None else previous.followers.get(replica_id)
            if known is None:
                self.followers[replica_id] = FollowerProgress(last_caught_up_ms=since_ms)
            else:
                self.followers[replica_id] = replace(
                    known,
                    last_caught_up_ms=since_ms,
                    last_fetch_ms=since_ms,
                    leader_end_at_last_fetch=start_offset,
                    has_fetched=False,
                )

    def _assign(self, state: PartitionState) -> None:
        self.replicas = state.replicas
        self.adding = state.adding
        """Those that were not replicas before the reassignment that is under way."""
        self.is_alone = state.replicas == (self.node_id,)
        """Whether there is no other replica: then the high watermark is the log end, and nobody has to be asked."""
        self.followers = {
            replica_id: self.followers.get(replica_id) or FollowerProgress()
            for replica_id in state.replicas
            if replica_id != self.node_id
        }

    def update(self, state: PartitionState) -> None:
        """Go on in the same epoch with what the metadata says. What is older than what is known here changes nothing.

        Metadata of the known partition epoch says nothing of a change under way, which may still be stored.
        """
        if state.partition_epoch < self.partition_epoch:
            return
        self._assign(state)
        if state.partition_epoch > self.partition_epoch:
            self._store(state.isr, state.partition_epoch)
            self.is_recovering = state.is_recovering

    # Followers

    def check_replica(self, name: str, replica_id: int, broker_epoch: int, leader_epoch: int) -> None:
        """Whether a broker may fetch as a follower (R4): it is assigned, and this is its newest registration."""
        if replica_id not in self.followers:
            sentence = f"broker {replica_id} is no replica of {name}"
            # A follower that knows an epoch may know of an assignment which has not come here yet.
            raise NotLeaderOrFollower(sentence) if leader_epoch == NO_LEADER_EPOCH else UnknownLeaderEpoch(sentence)
        registered = self._broker_epoch_of(replica_id)
        if registered is not None and UNCHECKED_EPOCH < broker_epoch < registered:
            raise NotLeaderOrFollower(f"broker {replica_id} has registered again since it sent epoch {broker_epoch}")

    def fetched(
        self,
        replica_id: int,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        log_end_offset: int,
        now_ms: int,
    ) -> bool:
        """Take in the fetch of an assigned replica. Returns whether its log ends elsewhere than before.

        Only for a fetch that is neither refused nor told where it diverges: such a one says nothing of the log that the
        follower will have (R86).
        """
        return self.followers[replica_id].fetched(fetch_offset, log_start_offset, broker_epoch, log_end_offset, now_ms)

    def stayed(self, replica_id: int, until_ms: int) -> None:
        """A replica that had the whole log fetched again and again until then, while it was the same."""
        follower = self.followers.get(replica_id)
        if follower is not None:
            follower.stayed(until_ms)

    def is_caught_up(self, replica_id: int, log_end_offset: int, now_ms: int) -> bool:
        return self.followers[replica_id].is_caught_up(log_end_offset, self._lag_time_max_ms, now_ms)

    def _is_eligible(self, replica_id: int) -> bool:
        """Whether a follower may be in sync: its broker is there, and has not started anew since it fetched (R92)."""
        registered = self._broker_epoch_of(replica_id)
        fetched = self.followers[replica_id].broker_epoch
        return registered is not None and (registered == fetched or UNCHECKED_EPOCH in (registered, fetched))

    # Watermarks

    def high_watermark(self, log_end_offset: int, min_insync_replicas: int, now_ms: int) -> int | None:
        """Up to where every record is committed; ``None`` while too few replicas are in sync to commit anything (R11).

        Also a replica that has caught up and is about to join counts: else the leader would run ahead of it forever.
        The caller never moves back.
        """
        if len(self.in_sync) < self.needed(min_insync_replicas):
            return None
        lowest = log_end_offset
        for replica_id, follower in self.followers.items():
            if follower.log_end_offset < lowest and (
                replica_id in self.maximal_in_sync
                or (self.is_caught_up(replica_id, log_end_offset, now_ms) and self._is_eligible(replica_id))
            ):
                lowest = follower.log_end_offset
        return lowest

    def low_watermark(self, log_start_offset: int) -> int:
        """Where the log starts on all replicas that are online (R17)."""
        starts = [
            follower.log_start_offset
            for replica_id, follower in self.followers.items()
            if self._broker_epoch_of(replica_id) is not None
        ]
        return min(log_start_offset, *starts) if starts else log_start_offset

    # Enough replicas

    def needed(self, min_insync_replicas: int) -> int:
        """A topic with fewer replicas than ``min.insync.replicas`` needs all of them (R12)."""
        return min(min_insync_replicas, len(self.replicas))

    def check_in_sync(self, name: str, min_insync_replicas: int) -> None:
        """acks=all promises ``min.insync.replicas`` copies; refuse before anything is written (R14)."""
        needed = self.needed(min_insync_replicas)
        if len(self.in_sync) < needed:
            raise NotEnoughReplicas(
                f"{name} has {len(self.in_sync)} in-sync replicas, min.insync.replicas asks for {needed}"
            )

    def is_promise_kept(self, min_insync_replicas: int) -> bool:
        """Whether what is committed now is on as many replicas as acks=all promises."""
        return len(self.maximal_in_sync) >= self.needed(min_insync_replicas)

    # Changing the in-sync set

    def propose_expansion(
        self, replica_id: int, high_watermark: int, log_end_offset: int, min_insync_replicas: int, now_ms: int
    ) -> InSyncProposal | None:
        """Ask to take one more replica in, if it has all that is committed (R8); ``None`` if it may not join now.

        It has to reach the start of this epoch too: the high watermark of a new leader may lag behind what is committed
        (R87). While too few are in sync the high watermark stands, and says nothing of lag: it has to be caught up
        (R94).
        """
        follower = self.followers.get(replica_id)
        if self.proposal is not None or follower is None or replica_id in self.in_sync:
            return None
        if follower.log_end_offset < max(high_watermark, self.start_offset) or not self._is_eligible(replica_id):
            return None
        is_short = len(self.in_sync) < self.needed(min_insync_replicas)
        if is_short and not self.is_caught_up(replica_id, log_end_offset, now_ms):
            return None
        return self._propose(self.in_sync | {replica_id})

    def propose_shrinking(self, log_end_offset: int, now_ms: int) -> InSyncProposal | None:
        """Ask to drop those that are behind (R9) or no longer assigned (R96); ``None`` if there are none."""
        if self.proposal is not None:
            return None
        kept = frozenset(
            replica_id
            for replica_id in self.in_sync
            if replica_id == self.node_id
            or (replica_id in self.followers and self.is_caught_up(replica_id, log_end_offset, now_ms))
        )
        return None if kept == self.in_sync else self._propose(kept)

    def _propose(self, in_sync: frozenset[int]) -> InSyncProposal:
        epochs = {replica_id: self._epoch_of(replica_id) for replica_id in sorted(in_sync)}
        self.proposal = InSyncProposal(self.epoch, self.partition_epoch, epochs)
        self.maximal_in_sync = self.in_sync | in_sync
        return self.proposal

    def _epoch_of(self, replica_id: int) -> int:
        if replica_id != self.node_id:
            return self.followers[replica_id].broker_epoch
        registered = self._broker_epoch_of(replica_id)
        return UNCHECKED_EPOCH if registered is None else registered

    def committed(
        self, proposal: InSyncProposal, in_sync: Iterable[int], leader_epoch: int, partition_epoch: int
    ) -> bool:
        """The controller has stored a change, and says what is stored now. Returns whether that was news (R55)."""
        if proposal is not self.proposal or leader_epoch != self.epoch or partition_epoch < self.partition_epoch:
            return False
        self._store(in_sync, partition_epoch)
        self.is_recovering = False
        return True

    def refused(self, proposal: InSyncProposal, error_code: int) -> bool:
        """The controller has not stored a change. Returns whether it has to be asked again (R55).

        Unless it says that nothing was stored, the change stays under way until the metadata tells what is.
        """
        if proposal is not self.proposal:
            return False
        if error_code in _TAKEN_BACK:
            self._store(self.in_sync, self.partition_epoch)
            return False
        return error_code not in _METADATA_WILL_TELL

    def _store(self, in_sync: Iterable[int], partition_epoch: int) -> None:
        self.in_sync = self.maximal_in_sync = frozenset(in_sync)
        self.partition_epoch = partition_epoch
        self.proposal = None
