"""What a follower decides: R15, R17, R21, R27-R32, and the classic bugs R82-R85, R89 and R98."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lamina.broker.partitions.follower import (
    Follower,
    FollowerState,
    Reaction,
    first_offset,
    followed_high_watermark,
    followed_log_start,
    offset_of_shorter_leader,
    offset_of_straddling_batch,
    offset_to_start_anew,
    reaction_to,
    truncation_offset,
)
from lamina.errors import ErrorCode
from lamina.log.epochs import EpochStart
from tests.broker.partitions.two_logs import ModelLog, answer, begin, epochs_of, follow_once, shared_end
from tests.examples import examples


def a_log(end: int, *entries: tuple[int, int], start: int = 0, high_watermark: int = 0) -> ModelLog:
    return ModelLog(start, [(0, 0)] * (end - start), epochs_of(*entries), high_watermark)


# R27, line by line


@pytest.mark.parametrize(
    ("case", "leader_end", "offset"),
    [
        ("end undefined: the high watermark", (-1, -1), 4),
        ("epoch undefined, end known", (-1, 7), 7),
        ("epoch undefined, end above ours", (-1, 70), 20),
        ("our log has that epoch, the leader's ends first", (3, 8), 8),
        ("our log has that epoch, ours ends first", (3, 15), 10),
        ("our newest epoch, ours ends first", (6, 99), 20),
        ("our largest below it is older: to the end of that one", (5, 12), 10),
        ("none of ours is at or below it: all of ours is foreign", (0, 1), 0),
    ],
)
def test_r27_where_a_follower_truncates_to(case: str, leader_end: tuple[int, int], offset: int) -> None:
    log = a_log(20, (1, 0), (3, 5), (6, 10), high_watermark=4)
    assert truncation_offset(log, log.high_watermark, EpochStart(*leader_end)) == offset, case


def test_r27_a_log_without_epochs_goes_by_the_leaders_end() -> None:
    assert truncation_offset(a_log(20), 4, EpochStart(3, 8)) == 8


def test_r27_a_log_whose_first_epoch_is_younger_keeps_none_of_it() -> None:
    """With the leader's end alone, the fetch after it would diverge in the same way, for ever."""
    log = a_log(20, (5, 8), start=8)
    assert truncation_offset(log, 8, EpochStart(3, 15)) == 8


# R21


def test_r21_a_follower_begins_at_its_log_end_if_it_knows_epochs() -> None:
    assert first_offset(a_log(20, (1, 0)), 4) == 20


def test_r21_a_follower_without_epochs_begins_at_its_high_watermark() -> None:
    assert first_offset(a_log(20), 4) == 4


# R29 and R30


@pytest.mark.parametrize(
    ("leader", "shorter", "anew"), [((0, 10), 10, None), ((25, 30), None, 25), ((3, 30), None, None)]
)
def test_r29_out_of_range(leader: tuple[int, int], shorter: int | None, anew: int | None) -> None:
    log = a_log(20, (1, 0))
    start, end = leader
    assert offset_of_shorter_leader(log, end) == shorter
    assert offset_to_start_anew(log, start) == anew


@pytest.mark.parametrize(
    ("log", "batch", "leader_start", "offset"),
    [
        (a_log(5, start=5), (3, 7), 5, 3),
        (a_log(5, start=5), (3, 5), 5, 3),
        (a_log(5, start=5), (3, 4), 5, None),
        (a_log(5, start=5), (5, 7), 5, None),
        (a_log(5, start=4), (3, 7), 4, None),
        (a_log(5, start=4), (3, 7), 5, 3),
        (a_log(0), (-3, 7), 0, None),
    ],
)
def test_r30_a_batch_that_begins_below_the_end_of_a_log_of_which_the_leader_has_nothing(
    log: ModelLog, batch: tuple[int, int], leader_start: int, offset: int | None
) -> None:
    assert offset_of_straddling_batch(log, *batch, leader_start) == offset


# R15, R17, R32


@pytest.mark.parametrize(("told", "taken"), [(3, 5), (7, 7), (30, 20)])
def test_r15_the_high_watermark_is_the_leaders_within_ones_own_log(told: int, taken: int) -> None:
    assert followed_high_watermark(a_log(20, start=5), told) == taken


@pytest.mark.parametrize(("told", "taken"), [(3, 5), (7, 7), (30, 12)])
def test_r17_the_log_start_never_goes_back_nor_above_the_high_watermark(told: int, taken: int) -> None:
    assert followed_log_start(a_log(20, start=5), 12, told) == taken


def test_r32_reactions_to_errors() -> None:
    assert reaction_to(ErrorCode.OFFSET_OUT_OF_RANGE) is Reaction.ASK_OFFSETS
    assert reaction_to(ErrorCode.FENCED_LEADER_EPOCH) is Reaction.FAIL
    for code in (ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR, 109):
        assert reaction_to(code) is Reaction.WAIT


def test_r32_who_failed_stays_so_until_there_is_another_follower() -> None:
    follower = Follower(2, 7)
    follower.wait("a reason")
    assert (follower.state, follower.reason) == (FollowerState.WAITING, "a reason")
    follower.fail("another")
    follower.fetch()
    assert (follower.state, follower.reason) == (FollowerState.FAILED, "another")


def test_lag_is_what_is_committed_and_not_here() -> None:
    follower = Follower(2, 7)
    assert follower.lag(10) == -1
    follower.leader_high_watermark = 12
    assert (follower.lag(10), follower.lag(15)) == (2, 0)


# The classic bugs


def followed(log: ModelLog, leader: ModelLog, rounds: int = 20) -> ModelLog:
    begin(log)
    for _ in range(rounds):
        follow_once(log, leader, 100)
    return log


def written(*runs: tuple[int, int]) -> ModelLog:
    """Records by (epoch, how many), the same ones wherever they are written."""
    log = ModelLog()
    for epoch, count in runs:
        for _ in range(count):
            log.append((epoch, log.log_end_offset))
    return log


def test_r82_kip_101_what_is_above_the_followers_high_watermark_and_the_leaders_too_is_kept() -> None:
    """The follower has the record and not yet its high watermark; it restarts, and may be elected at any moment."""
    log, leader = written((0, 2)), written((0, 2))
    log.high_watermark = 1
    begin(log)
    assert log.log_end_offset == 2
    follow_once(log, leader, 100)
    assert log.log_end_offset == 2


def test_r83_kip_279_a_leader_without_our_newest_epoch_has_us_step_down_epoch_by_epoch() -> None:
    log, leader = written((0, 5), (2, 3), (4, 3)), written((0, 5), (1, 4), (3, 6), (5, 1))
    begin(log)
    asked = []
    while log.records != leader.records:
        asked.append((log.epochs.latest, log.log_end_offset))
        follow_once(log, leader, 100)
    assert asked == [(4, 11), (2, 8), (0, 5)]


def test_r84_kafka_10706_an_epoch_without_records_at_the_log_end_goes_with_the_first_answer() -> None:
    log, leader = written((0, 5)), written((0, 5))
    log.epochs.assign(3, 5)
    leader.epochs.assign(4, 5)
    assert answer(leader, 5, 3, 100).diverging == (0, 5)
    followed(log, leader, rounds=1)
    assert log.epochs.entries == [(0, 0)]
    assert answer(leader, 5, 0, 100).diverging is None


def test_r85_kafka_14704_a_diverging_answer_moves_no_high_watermark() -> None:
    """An ex-leader's own records would become readable before they are cut."""
    log, leader = written((0, 2), (1, 3)), written((0, 2), (2, 8))
    log.high_watermark, leader.high_watermark = 2, 10
    assert answer(leader, 5, 1, 100).high_watermark == 10
    follow_once(log, leader, 100)
    assert (log.high_watermark, log.log_end_offset) == (2, 2)


def test_r89_kafka_9491_starting_anew_moves_the_high_watermark_with_the_log_start() -> None:
    log, leader = written((0, 2)), written((0, 9))
    leader.high_watermark = 9
    leader.delete_to(6)
    begin(log)
    follow_once(log, leader, 100)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (6, 6, 6)
    assert followed(log, leader).records == leader.records


def test_r98_kafka_12996_below_the_leaders_log_start_is_out_of_range_though_the_epoch_diverges() -> None:
    log, leader = written((0, 2), (1, 1)), written((0, 2), (2, 8))
    leader.high_watermark = 10
    leader.delete_to(8)
    assert answer(leader, 3, 1, 100).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert followed(log, leader).records == leader.records


# Any history

REPLICAS = 3
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("elect"), st.integers(0, REPLICAS - 1), st.just(0)),
        st.tuples(st.just("append"), st.just(0), st.integers(1, 4)),
        st.tuples(st.just("follow"), st.integers(0, REPLICAS - 1), st.integers(1, 4)),
        st.tuples(st.just("lose"), st.integers(0, REPLICAS - 1), st.integers(1, 4)),
        st.tuples(st.just("delete"), st.just(0), st.integers(1, 6)),
    ),
    max_size=40,
)


class Replicas:
    """Replicas of one partition, any of which may be elected, in sync or not; each follows as followers do."""

    def __init__(self) -> None:
        self.logs = [ModelLog() for _ in range(REPLICAS)]
        self.epoch = -1
        self.written = 0
        self.elect(0)

    def elect(self, replica: int) -> None:
        self.epoch += 1
        self.leader = self.logs[replica]
        self.leader.epochs.assign(self.epoch, self.leader.log_end_offset)  # R20
        for log in self.logs:
            if log is not self.leader:
                begin(log)

    def do(self, what: str, replica: int, count: int) -> None:
        log = self.logs[replica]
        match what:
            case "elect":
                self.elect(replica)
            case "append":
                for _ in range(count):
                    self.written += 1
                    self.leader.append((self.epoch, self.written))
                self.leader.high_watermark = self.leader.log_end_offset
            case "follow" if log is not self.leader:
                follow_once(log, self.leader, count)
            case "lose" if log is not self.leader:
                log.truncate(max(log.log_end_offset - count, log.log_start_offset))
            case "delete":
                self.leader.delete_to(min(self.leader.log_start_offset + count, self.leader.high_watermark))


@settings(max_examples=examples(300), deadline=None)
@example(steps=[("append", 0, 2), ("elect", 1, 0), ("append", 0, 1), ("elect", 0, 0), ("delete", 0, 1)])
@given(steps=STEPS)
def test_after_any_history_a_follower_has_its_leaders_log_and_cut_nothing_that_both_shared(
    steps: list[tuple[str, int, int]],
) -> None:
    replicas = Replicas()
    for step in steps:
        replicas.do(*step)
    leader = replicas.leader
    for log in replicas.logs:
        if log is leader:
            continue
        # Each round makes progress: an epoch fewer, or a record more.
        for _ in range(2 * (replicas.epoch + 2) + leader.log_end_offset + 2):
            follow_once(log, leader, 2)
        assert log.log_end_offset == leader.log_end_offset
        assert shared_end(log, leader) == leader.log_end_offset
        assert log.log_start_offset >= leader.log_start_offset
        for number, (epoch, _) in enumerate(log.records):
            assert log.epochs.epoch_at(log.log_start_offset + number) == epoch
