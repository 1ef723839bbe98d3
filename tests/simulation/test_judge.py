"""The judge finds what must not be."""

import pytest

from tests.simulation.judge import Judge, Outcome, Violated

KEY = ("t", 0)


@pytest.fixture
def judge() -> Judge:
    return Judge(lambda _: None)


def test_an_offset_is_given_once(judge: Judge) -> None:
    judge.acknowledged(KEY, 5, [b"a", b"b"])
    judge.acknowledged(KEY, 5, [b"a"])
    with pytest.raises(Violated, match="given to"):
        judge.acknowledged(KEY, 6, [b"c"])


def test_what_was_acknowledged_or_seen_does_not_change(judge: Judge) -> None:
    judge.acknowledged(KEY, 0, [b"a"])
    judge.saw(KEY, 0, b"a")
    judge.saw(KEY, 1, b"b")
    with pytest.raises(Violated):
        judge.saw(KEY, 0, b"x")
    with pytest.raises(Violated):
        judge.saw(KEY, 1, b"x")
    with pytest.raises(Violated):
        judge.acknowledged(KEY, 1, [b"x"])


def test_a_power_cut_takes_what_was_seen_above_all_that_was_acknowledged(judge: Judge) -> None:
    judge.saw(KEY, 0, b"a")
    judge.acknowledged(KEY, 1, [b"b"])
    judge.saw(KEY, 2, b"c")
    judge.saw_high_watermark("reader", KEY, 3)
    judge.lost_power()
    judge.saw(KEY, 2, b"another")
    judge.saw_high_watermark("reader", KEY, 2)
    with pytest.raises(Violated):
        judge.saw(KEY, 0, b"another")


def test_a_high_watermark_does_not_go_back(judge: Judge) -> None:
    judge.saw_high_watermark("one", KEY, 5)
    judge.saw_high_watermark("two", KEY, 4)
    with pytest.raises(Violated):
        judge.saw_high_watermark("one", KEY, 4)


def test_everything_acknowledged_and_seen_is_there_in_the_end(judge: Judge) -> None:
    judge.acknowledged(KEY, 0, [b"a"])
    judge.saw(KEY, 1, b"b")
    judge.check_log(KEY, {0: b"a", 1: b"b", 2: b"c"})
    with pytest.raises(Violated, match="acknowledged"):
        judge.check_log(KEY, {1: b"b"})
    with pytest.raises(Violated, match="seen"):
        judge.check_log(KEY, {0: b"a"})


def test_what_an_idempotent_producer_wrote_is_there_once(judge: Judge) -> None:
    judge.written_once([b"a"])
    judge.check_log(KEY, {0: b"a", 1: b"b", 2: b"b"})
    with pytest.raises(Violated, match="twice"):
        judge.check_log(KEY, {0: b"a", 1: b"a"})


@pytest.mark.parametrize("outcome", [Outcome.OPEN, Outcome.ABORTED])
def test_nothing_is_seen_of_a_transaction_that_was_not_committed(judge: Judge, outcome: Outcome) -> None:
    transaction = judge.begin({KEY: [b"a"]})
    transaction.outcome = outcome
    with pytest.raises(Violated):
        judge.saw_committed(KEY, b"a")
    judge.check_transactions({KEY: []})
    with pytest.raises(Violated):
        judge.check_transactions({KEY: [b"a"]})


def test_a_transaction_is_seen_whole_or_not_at_all(judge: Judge) -> None:
    other = ("u", 0)
    transaction = judge.begin({KEY: [b"a"], other: [b"b"]})
    transaction.outcome = Outcome.ENDING
    judge.check_transactions({KEY: [b"a"], other: [b"b"]})
    judge.check_transactions({KEY: [], other: []})
    with pytest.raises(Violated, match="only"):
        judge.check_transactions({KEY: [b"a"], other: []})
    transaction.outcome = Outcome.COMMITTED
    with pytest.raises(Violated, match="not seen"):
        judge.check_transactions({KEY: [], other: []})
