"""A partition's leader: followers' progress, the in-sync set with a change under way, and the watermarks."""

from collections.abc import Mapping

import pytest

from lamina.broker.partitions.follower_progress import NEVER_MS, UNKNOWN_OFFSET
from lamina.broker.partitions.leader import InSyncProposal, Leader
from lamina.errors import ErrorCode, NotEnoughReplicas, NotLeaderOrFollower, UnknownLeaderEpoch
from lamina.image.topic import Partition as PartitionState

LAG_MS = 30_000
NOW_MS = 1_000_000
REPLICAS = (1, 2, 3)


def state(
    isr: tuple[int, ...],
    *,
    epoch: int = 4,
    partition_epoch: int = 7,
    replicas: tuple[int, ...] = REPLICAS,
    is_recovering: bool = False,
) -> PartitionState:
    return PartitionState(replicas, 1, epoch, isr, (), partition_epoch, is_recovering)


def sets(leader: Leader) -> tuple[list[int], list[int]]:
    """The committed in-sync set and the maximal one."""
    return sorted(leader.in_sync), sorted(leader.maximal_in_sync)


class World:
    """Broker 1, which leads, and how its log and its cluster stand."""

    def __init__(
        self,
        isr: tuple[int, ...] = REPLICAS,
        *,
        start_offset: int = 10,
        min_insync: int = 1,
        is_recovering: bool = False,
    ) -> None:
        self.online: dict[int, int] = {1: 100, 2: 200, 3: 300}
        """Broker epochs."""
        self.now_ms = NOW_MS
        self.end = start_offset
        self.min_insync = min_insync
        self.high_watermark = 0
        self.leader = Leader(
            1, state(isr, is_recovering=is_recovering), start_offset, LAG_MS, self.online.get, self.now_ms
        )

    def fetch(self, replica_id: int, offset: int, log_start_offset: int = 0, epoch: int | None = None) -> bool:
        epoch = self.online[replica_id] if epoch is None else epoch
        return self.leader.fetched(replica_id, epoch, offset, log_start_offset, self.end, self.now_ms)

    def advance(self) -> int | None:
        return self.leader.high_watermark(self.end, self.min_insync, self.now_ms)

    def expand(self, replica_id: int) -> InSyncProposal | None:
        return self.leader.propose_expansion(replica_id, self.high_watermark, self.end, self.min_insync, self.now_ms)

    def shrink(self) -> InSyncProposal | None:
        return self.leader.propose_shrinking(self.end, self.now_ms)


def members(proposal: InSyncProposal | None) -> Mapping[int, int]:
    assert proposal is not None
    return proposal.in_sync


# Followers


def test_r4_who_is_not_assigned_is_refused_by_what_it_knows() -> None:
    leader = World().leader
    with pytest.raises(UnknownLeaderEpoch):
        leader.check_replica("t-0", 9, 1, 4)
    with pytest.raises(NotLeaderOrFollower):
        leader.check_replica("t-0", 9, 1, -1)
    with pytest.raises(UnknownLeaderEpoch):
        leader.check_replica("t-0", 1, 100, 4)


@pytest.mark.parametrize(("epoch", "is_refused"), [(199, True), (200, False), (201, False), (-1, False)])
def test_r4_an_older_registration_is_refused(epoch: int, is_refused: bool) -> None:
    leader = World().leader
    if is_refused:
        with pytest.raises(NotLeaderOrFollower):
            leader.check_replica("t-0", 2, epoch, 4)
    else:
        leader.check_replica("t-0", 2, epoch, 4)


def test_r6_a_follower_at_the_end_has_caught_up_now() -> None:
    world = World()
    world.now_ms += 5
    assert world.fetch(2, 10, log_start_offset=3)
    progress = world.leader.followers[2]
    assert (progress.log_end_offset, progress.log_start_offset, progress.broker_epoch) == (10, 3, 200)
    assert progress.last_caught_up_ms == NOW_MS + 5
    assert not world.fetch(2, 10), "nothing has moved"


def test_r6_a_follower_that_reaches_the_end_of_the_fetch_before_had_caught_up_then() -> None:
    world = World()
    world.fetch(2, 8)
    assert world.leader.followers[2].last_caught_up_ms == NOW_MS, "as an in-sync member since the election"
    world.now_ms, world.end = NOW_MS + 100, 50
    world.fetch(2, 9)
    assert world.leader.followers[2].last_caught_up_ms == NOW_MS
    world.now_ms, world.end = NOW_MS + 200, 90
    world.fetch(2, 50)
    assert world.leader.followers[2].last_caught_up_ms == NOW_MS + 100


def test_r6_catching_up_is_never_taken_back() -> None:
    world = World()
    world.fetch(2, 10)
    world.now_ms += 10
    world.fetch(2, 4)
    assert world.leader.followers[2].last_caught_up_ms == NOW_MS


def test_r7_caught_up_is_at_the_end_or_not_long_ago() -> None:
    world = World()
    world.fetch(2, 8)
    world.now_ms += LAG_MS
    assert world.leader.is_caught_up(2, 10, world.now_ms)
    world.now_ms += 1
    assert not world.leader.is_caught_up(2, 10, world.now_ms)
    assert world.leader.is_caught_up(2, 8, world.now_ms)


# The high watermark


def test_r11_it_is_what_every_in_sync_replica_has() -> None:
    world = World(isr=(1, 2))
    assert world.advance() == UNKNOWN_OFFSET, "a new leader waits until its in-sync followers have fetched (R20)"
    world.fetch(2, 7)
    assert world.advance() == 7
    world.fetch(2, 10)
    assert world.advance() == 10


def test_r11_a_replica_that_has_caught_up_counts_before_it_is_in_sync() -> None:
    world = World(isr=(1,))
    assert world.advance() == 10, "nobody else has caught up"
    world.fetch(2, 10)
    world.end = 15
    assert world.advance() == 10
    world.now_ms += LAG_MS + 1
    assert world.advance() == 15
    world.now_ms -= LAG_MS + 1
    world.online[2] = 201
    assert world.advance() == 15, "it has started anew since it fetched"
    del world.online[2]
    assert world.advance() == 15, "its broker is away"


def test_r11_it_stands_while_too_few_are_in_sync() -> None:
    world = World(isr=(1,), min_insync=2)
    assert world.advance() is None
    proposal = world.expand(2)
    assert proposal is None, "unknown to this leader"
    world.fetch(2, 10)
    proposal = world.expand(2)
    assert proposal is not None
    assert world.advance() is None, "the committed set counts, not the maximal one (R10)"
    assert world.leader.committed(proposal, (1, 2), 4, 8)
    assert world.advance() == 10


def test_r12_a_topic_of_few_replicas_needs_no_more_than_it_has() -> None:
    leader = Leader(1, state((1,), replicas=(1,)), 10, LAG_MS, {1: 100}.get, NOW_MS)
    leader.check_in_sync("t-0", 2)
    assert (leader.needed(2), leader.high_watermark(10, 2, NOW_MS), leader.is_alone) == (1, 10, True)


def test_r14_too_few_in_sync_are_refused_by_the_committed_set() -> None:
    world = World(isr=(1,), min_insync=2)
    world.fetch(2, 10)
    world.expand(2)
    with pytest.raises(NotEnoughReplicas):
        world.leader.check_in_sync("t-0", 2)
    assert world.leader.is_promise_kept(2), "the maximal set holds what is committed"
    assert not world.leader.is_promise_kept(3)


def test_r17_the_low_watermark_is_the_lowest_start_of_replicas_that_are_online() -> None:
    world = World()
    assert world.leader.low_watermark(6) == UNKNOWN_OFFSET, "nobody has said where its log starts"
    world.fetch(2, 10, log_start_offset=5)
    world.fetch(3, 10, log_start_offset=2)
    assert world.leader.low_watermark(6) == 2
    del world.online[3]
    assert world.leader.low_watermark(6) == 5
    assert Leader(1, state((1,), replicas=(1,)), 10, LAG_MS, {1: 100}.get, NOW_MS).low_watermark(6) == 6


# Expanding


def test_r8_a_replica_that_has_all_that_is_committed_joins_alone() -> None:
    world = World(isr=(1,))
    world.high_watermark = 12
    world.fetch(2, 11)
    assert world.expand(2) is None
    world.fetch(2, 12)
    world.fetch(3, 12)
    proposal = world.expand(2)
    assert proposal is not None
    assert (dict(proposal.in_sync), proposal.leader_epoch, proposal.partition_epoch) == ({1: 100, 2: 200}, 4, 7)
    assert sets(world.leader) == ([1], [1, 2])
    assert world.expand(3) is None, "one change at a time"
    assert world.leader.committed(proposal, (1, 2), 4, 8)
    assert members(world.expand(3)) == {1: 100, 2: 200, 3: 300}
    assert world.expand(2) is None


def test_r87_a_replica_below_the_start_of_this_epoch_does_not_join() -> None:
    world = World(isr=(1,), start_offset=10)
    world.high_watermark = 5
    world.fetch(2, 9)
    assert world.expand(2) is None
    world.fetch(2, 10)
    assert members(world.expand(2)) == {1: 100, 2: 200}


def test_r91_r92_who_is_away_or_has_started_anew_does_not_join() -> None:
    world = World(isr=(1,))
    world.fetch(2, 10)
    world.online[2] = 201
    assert world.expand(2) is None
    del world.online[2]
    assert world.expand(2) is None
    world.online[2] = 200
    assert members(world.expand(2)) == {1: 100, 2: 200}


def test_r8_an_epoch_that_nobody_names_is_not_checked() -> None:
    world = World(isr=(1,))
    world.fetch(2, 10, epoch=-1)
    assert members(world.expand(2)) == {1: 100, 2: -1}


def test_r94_while_too_few_are_in_sync_a_replica_has_to_be_caught_up_to_join() -> None:
    world = World(isr=(1,), min_insync=2)
    world.end = 500
    world.high_watermark = 10
    world.fetch(2, 100)
    assert world.expand(2) is None
    world.fetch(2, 500)
    assert members(world.expand(2)) == {1: 100, 2: 200}


# Shrinking


def test_r9_those_that_are_behind_leave_together_and_never_the_leader() -> None:
    world = World()
    assert world.shrink() is None
    world.now_ms += LAG_MS + 1
    world.fetch(3, 10)
    assert members(world.shrink()) == {1: 100, 3: 300}
    assert world.leader.maximal_in_sync == {1, 2, 3}, "while it is not known to be stored, all count (R10, R93)"
    assert world.shrink() is None, "one change at a time"
    world.now_ms += 2 * LAG_MS
    world.leader.update(state((1, 3), partition_epoch=8))
    world.end = 11
    assert members(world.shrink()) == {1: 100}


def test_r93_the_high_watermark_moves_once_a_shrink_is_stored() -> None:
    world = World(isr=(1, 2))
    world.fetch(2, 4)
    world.now_ms += LAG_MS + 1
    proposal = world.shrink()
    assert proposal is not None
    assert world.advance() == 4
    assert world.leader.committed(proposal, (1,), 4, 8)
    assert world.advance() == 10


def test_r96_a_member_that_is_not_assigned_leaves() -> None:
    world = World(isr=(1, 2, 9))
    assert members(world.shrink()) == {1: 100, 2: -1}


# Other replicas


def growing(*, min_insync: int = 1) -> World:
    """Broker 2 is being added to a partition that broker 1 kept alone, without another leader epoch."""
    world = World(isr=(1,), min_insync=min_insync)
    world.leader.update(state((1,), replicas=(2, 1)))
    assert not world.leader.is_alone
    return world


def test_r11_a_replica_that_is_added_holds_nothing_back_until_it_has_caught_up() -> None:
    world = growing()
    world.end = 30
    assert world.advance() == 30
    world.fetch(2, 0)
    assert world.advance() == 30
    world.fetch(2, 30)
    world.end = 31
    assert world.advance() == 30, "or it would never reach a leader that runs ahead"
    world.high_watermark = 30
    assert members(world.expand(2)) == {1: 100, 2: 200}


def test_r12_a_replica_that_is_added_is_one_that_acks_all_needs_r52() -> None:
    world = growing(min_insync=2)
    with pytest.raises(NotEnoughReplicas):
        world.leader.check_in_sync("t-0", 2)
    assert world.advance() is None


def test_a_replica_that_goes_is_no_follower_any_more() -> None:
    world = World(isr=(1, 2, 3))
    world.leader.update(state((1, 2), replicas=(1, 2), partition_epoch=8))
    assert list(world.leader.followers) == [2]
    with pytest.raises(UnknownLeaderEpoch):
        world.leader.check_replica("t-0", 3, 300, 4)


# Answers


def proposed() -> tuple[Leader, InSyncProposal]:
    world = World(isr=(1,))
    world.fetch(2, 10)
    proposal = world.expand(2)
    assert proposal is not None
    return world.leader, proposal


@pytest.mark.parametrize(("epoch", "partition_epoch"), [(5, 9), (3, 9), (4, 6)])
def test_r55_success_of_another_leader_epoch_or_an_older_state_is_ignored(epoch: int, partition_epoch: int) -> None:
    leader, proposal = proposed()
    assert not leader.committed(proposal, (1, 2), epoch, partition_epoch)
    assert leader.proposal is proposal


def test_r55_an_answer_to_what_is_no_longer_under_way_is_ignored() -> None:
    leader, proposal = proposed()
    leader.update(state((1, 3), partition_epoch=8))
    assert (sets(leader), leader.proposal) == (([1, 3], [1, 3]), None)
    assert not leader.committed(proposal, (1, 2), 4, 9)
    assert not leader.refused(proposal, ErrorCode.NETWORK_EXCEPTION)
    assert leader.in_sync == {1, 3}


@pytest.mark.parametrize("code", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_r55_what_was_certainly_not_stored_is_taken_back(code: ErrorCode) -> None:
    leader, proposal = proposed()
    assert not leader.refused(proposal, code)
    assert (sets(leader), leader.proposal) == (([1], [1]), None)


@pytest.mark.parametrize("code", [3, 100, 74, 95, 42, 108])
def test_r55_some_refusals_wait_for_metadata(code: int) -> None:
    leader, proposal = proposed()
    assert not leader.refused(proposal, code)
    assert (sets(leader), leader.proposal) == (([1], [1, 2]), proposal)
    leader.update(state((1,), partition_epoch=8))
    assert (sets(leader), leader.proposal) == (([1], [1]), None)


@pytest.mark.parametrize("code", [ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT, -1, 77])
def test_r55_other_errors_are_tried_again(code: int) -> None:
    leader, proposal = proposed()
    assert leader.refused(proposal, code)
    assert (sets(leader), leader.proposal) == (([1], [1, 2]), proposal)


def test_r46_a_recovering_partition_is_recovered_with_the_first_stored_change() -> None:
    world = World(isr=(1,), is_recovering=True)
    world.fetch(2, 10)
    proposal = world.expand(2)
    assert proposal is not None
    assert world.leader.is_recovering
    world.leader.committed(proposal, (1, 2), 4, 8)
    assert not world.leader.is_recovering


# Metadata


def test_r19_older_metadata_changes_nothing_and_that_of_the_same_state_keeps_what_is_under_way() -> None:
    leader, proposal = proposed()
    leader.update(state((1, 2, 3), partition_epoch=6, replicas=(1, 2)))
    assert (sets(leader), leader.replicas) == (([1], [1, 2]), REPLICAS)
    leader.update(state((1,), partition_epoch=7, replicas=(1, 2)))
    assert (sets(leader), leader.proposal, leader.replicas) == (([1], [1, 2]), proposal, (1, 2))
    assert list(leader.followers) == [2]
    assert leader.followers[2].log_end_offset == 10


def test_r20_the_same_leader_in_the_next_epoch_knows_its_followers() -> None:
    world = World(isr=(1, 2))
    world.fetch(2, 9, log_start_offset=4)
    world.fetch(3, 8)
    later_ms = NOW_MS + 50
    leader = Leader(1, state((1, 2), epoch=5), 12, LAG_MS, world.online.get, later_ms, previous=world.leader)
    known, behind = leader.followers[2], leader.followers[3]
    assert (known.log_end_offset, known.log_start_offset, known.broker_epoch) == (9, 4, 200)
    assert (known.last_caught_up_ms, known.last_fetch_ms, known.leader_end_at_last_fetch) == (later_ms, later_ms, 12)
    assert (behind.log_end_offset, behind.last_caught_up_ms, behind.last_fetch_ms) == (8, NEVER_MS, NEVER_MS)
    assert (leader.start_offset, leader.proposal) == (12, None)
    assert world.leader.followers[2].last_caught_up_ms == NOW_MS, "the role before is left as it was"


def test_r20_a_new_leader_knows_nothing_of_its_followers() -> None:
    progress = World(isr=(1, 2)).leader.followers
    assert (progress[2].log_end_offset, progress[2].last_caught_up_ms, progress[2].broker_epoch) == (-1, NOW_MS, -1)
    assert (progress[3].log_end_offset, progress[3].last_caught_up_ms) == (-1, NEVER_MS)
