"""A leader and its followers on logs in memory: what is committed is never lost, whoever is elected next.

The controller is a few lines: it stores the in-sync set by compare-and-set, checks broker epochs, and elects any member
that is online. Answers may be late or lost. Followers may lag, stop, come back, or come back with an empty disk.
"""

from dataclasses import dataclass, field, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lamina.broker.partitions.leader import InSyncProposal, Leader
from lamina.errors import ErrorCode, NotLeaderOrFollower
from lamina.image.topic import Partition as PartitionState
from tests.examples import examples

LAG_MS = 100
BROKERS = (1, 2, 3)

Log = list[tuple[int, int]]
"""Each record: the epoch of its leader and a number of its own."""


@dataclass
class Broker:
    epoch: int
    log: Log = field(default_factory=list)
    high_watermark: int = 0
    is_online: bool = True


def common_prefix(one: Log, other: Log) -> int:
    length = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        length += 1
    return length


class Replication(RuleBasedStateMachine):
    @initialize(min_insync=st.sampled_from((1, 2)), isr=st.sampled_from(((1,), (1, 2), BROKERS)))
    def begin(self, min_insync: int, isr: tuple[int, ...]) -> None:
        self.min_insync = min_insync
        self.now_ms = 0
        self.records = 0
        self.brokers = {broker_id: Broker(broker_id * 100) for broker_id in BROKERS}
        self.stored = PartitionState(BROKERS, 1, 0, isr)
        self.seen = {broker_id: broker.epoch for broker_id, broker in self.brokers.items()}
        """The brokers that the leader knows to be online, which it may learn late."""
        self.asked: InSyncProposal | None = None
        self.answer: tuple[InSyncProposal, PartitionState | ErrorCode] | None = None
        self.committed: Log = []
        self.take_office(previous=None)

    def take_office(self, previous: Leader | None) -> None:
        broker = self.brokers[self.stored.leader]
        self.leader: Leader | None = Leader(
            self.stored.leader,
            self.stored,
            len(broker.log),
            LAG_MS,
            lambda one: self.seen.get(one),
            self.now_ms,
            previous,
        )
        self.asked = self.answer = None
        self.watermark_of_epoch = broker.high_watermark
        self.advance()

    @property
    def own(self) -> Broker:
        return self.brokers[self.stored.leader]

    def advance(self) -> None:
        assert self.leader is not None
        own = self.own
        reached = self.leader.high_watermark(len(own.log), self.min_insync, self.now_ms)
        if reached is not None and reached > own.high_watermark:
            own.high_watermark = reached
            if reached > len(self.committed):
                assert own.log[: len(self.committed)] == self.committed
                self.committed = own.log[:reached]

    # The leader and its followers

    @rule(count=st.integers(1, 4))
    def append(self, count: int) -> None:
        if self.leader is None:
            return
        for _ in range(count):
            self.records += 1
            self.own.log.append((self.stored.leader_epoch, self.records))
        self.advance()

    @rule(place=st.integers(0, 1), most=st.sampled_from((0, 1, 9)), times=st.integers(1, 3))
    def fetch(self, place: int, most: int, times: int) -> None:
        """A follower fetches, a few times if it wants to catch up."""
        followers = [one for one in BROKERS if one != self.stored.leader]
        for _ in range(times):
            self.fetch_once(followers[place], most)

    def fetch_once(self, follower: int, most: int) -> None:
        leader = self.leader
        broker = self.brokers[follower]
        if leader is None or not broker.is_online:
            return
        own = self.own
        try:
            leader.check_replica("t-0", follower, broker.epoch, leader.epoch)
        except NotLeaderOrFollower:
            return
        offset = len(broker.log)
        common = common_prefix(broker.log, own.log)
        if common < offset:
            # As after DivergingEpoch: nothing of this fetch is taken in.
            del broker.log[common:]
            broker.high_watermark = min(broker.high_watermark, common)
            return
        told = own.high_watermark
        is_moved = leader.fetched(follower, broker.epoch, offset, 0, len(own.log), self.now_ms)
        if leader.proposal is None:
            self.asked = (
                leader.propose_expansion(follower, own.high_watermark, len(own.log), self.min_insync, self.now_ms)
                or self.asked
            )
        if is_moved:
            self.advance()
        broker.log.extend(own.log[offset : offset + most])
        broker.high_watermark = min(told, len(broker.log))

    @rule(elapsed_ms=st.sampled_from((1, LAG_MS // 2, LAG_MS + 1)))
    def pass_time(self, elapsed_ms: int) -> None:
        self.now_ms += elapsed_ms

    @rule()
    def look_for_laggards(self) -> None:
        if self.leader is None:
            return
        self.asked = self.leader.propose_shrinking(len(self.own.log), self.now_ms) or self.asked

    # The controller

    @rule()
    def decide(self) -> None:
        """The proposal reaches the controller, which may have been asked before."""
        if self.asked is None:
            return
        asked, stored = self.asked, self.stored
        if asked.leader_epoch != stored.leader_epoch:
            outcome: PartitionState | ErrorCode = ErrorCode.FENCED_LEADER_EPOCH
        elif set(asked.in_sync) == set(stored.isr):
            outcome = stored
        elif asked.partition_epoch != stored.partition_epoch:
            outcome = ErrorCode.INVALID_UPDATE_VERSION
        elif any(
            not self.brokers[member].is_online or epoch not in (-1, self.brokers[member].epoch)
            for member, epoch in asked.in_sync.items()
        ):
            outcome = ErrorCode.INELIGIBLE_REPLICA
        else:
            outcome = self.store(isr=tuple(asked.in_sync))
        self.answer = (asked, outcome)

    @rule(is_lost=st.booleans())
    def hear_answer(self, is_lost: bool) -> None:
        if self.answer is None or self.leader is None:
            return
        (proposal, outcome), self.answer = self.answer, None
        if is_lost:
            assert self.leader.refused(proposal, ErrorCode.NETWORK_EXCEPTION) == (self.leader.proposal is proposal)
        elif isinstance(outcome, PartitionState):
            if self.leader.committed(proposal, outcome.isr, outcome.leader_epoch, outcome.partition_epoch):
                self.advance()
        else:
            self.leader.refused(proposal, outcome)

    @rule()
    def hear_metadata(self) -> None:
        """The leader applies the newest image."""
        self.seen = {one: broker.epoch for one, broker in self.brokers.items() if broker.is_online}
        leader = self.leader
        if leader is None:
            return
        if leader.epoch == self.stored.leader_epoch:
            leader.update(self.stored)
            self.advance()
        else:
            self.take_office(previous=leader)

    def store(self, **changed: object) -> PartitionState:
        self.stored = replace(self.stored, **changed, partition_epoch=self.stored.partition_epoch + 1)  # type: ignore[arg-type]
        return self.stored

    # Failures

    @rule(
        what=st.sampled_from(("restart", "restart with an empty disk", "stop", "elect")),
        broker_id=st.sampled_from(BROKERS),
    )
    def fail(self, what: str, broker_id: int) -> None:
        if what == "elect":
            self.elect(broker_id)
        elif what == "stop":
            self.stop(broker_id)
        else:
            self.restart(broker_id, loses_disk=what != "restart")

    def restart(self, broker_id: int, *, loses_disk: bool) -> None:
        """A follower starts anew: the controller drops it from the in-sync set, unless it is the last."""
        broker, isr = self.brokers[broker_id], self.stored.isr
        if broker_id == self.stored.leader or (loses_disk and isr == (broker_id,)):
            return
        broker.epoch += 1
        broker.is_online = True
        if loses_disk:
            broker.log, broker.high_watermark = [], 0
        if broker_id in isr and len(isr) > 1:
            self.store(isr=tuple(one for one in isr if one != broker_id))

    def stop(self, broker_id: int) -> None:
        isr = tuple(one for one in self.stored.isr if one != broker_id) or self.stored.isr
        if not self.brokers[broker_id].is_online or isr == (broker_id,):
            return
        self.brokers[broker_id].is_online = False
        if broker_id == self.stored.leader:
            self.leader = None
            self.store(leader=-1, isr=isr)
            self.elect(isr[0])
        else:
            self.store(isr=isr)

    def elect(self, broker_id: int) -> None:
        """Any member that is online may lead, the same leader too."""
        if broker_id not in self.stored.isr or not self.brokers[broker_id].is_online:
            return
        stays = broker_id == self.stored.leader
        self.store(leader=broker_id, leader_epoch=self.stored.leader_epoch + 1)
        self.take_office(previous=self.leader if stays else None)

    # What always holds

    @invariant()
    def nothing_committed_is_lost(self) -> None:
        """Whoever may be elected has it all."""
        for member in self.stored.isr:
            assert self.brokers[member].log[: len(self.committed)] == self.committed, member

    @invariant()
    def the_high_watermark_never_goes_back_in_an_epoch(self) -> None:
        if self.leader is not None:
            assert self.own.high_watermark >= self.watermark_of_epoch
            self.watermark_of_epoch = self.own.high_watermark

    @invariant()
    def it_is_never_above_what_an_in_sync_replica_has(self) -> None:
        if self.leader is not None:
            for member in self.stored.isr:
                assert self.own.high_watermark <= len(self.brokers[member].log), member

    @invariant()
    def the_maximal_set_holds_the_stored_one(self) -> None:
        """Unless the controller has made it smaller, of which the leader hears later."""
        leader = self.leader
        if leader is not None and leader.epoch == self.stored.leader_epoch:
            assert set(self.stored.isr) <= leader.maximal_in_sync


TestReplication = Replication.TestCase
TestReplication.settings = settings(max_examples=examples(300), stateful_step_count=80, deadline=None)
