"""The checker finds what is wrong with a history, and nothing in one that is right."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.history.anomalies import Anomaly, Kind, summary
from tests.history.checker import check
from tests.history.events import Assigned, EndSeen, History, Read, Send, SendOutcome, TransactionOutcome
from tests.history.perfect_log import PerfectLog
from tests.history.plantings import PLANTINGS, Planting

P = ("t", 0)
STEPS = 80


def sent(value: bytes, offset: int | None, at_ms: float = 0, transaction: str | None = None, **fields: object) -> Send:
    producer = str(fields.get("producer", "p"))
    outcome = SendOutcome.UNKNOWN if offset is None else SendOutcome.ACKED
    return Send(producer, P, value, outcome, offset, at_ms, at_ms + 1, transaction)


def three(**changes: object) -> History:
    """Three values, sent one after the other, read by one reader, and there at last."""
    history = History()
    history.sends = [sent(b"a", 0, 0), sent(b"b", 1, 2), sent(b"c", 2, 4)]
    history.moves = [Assigned("r", P, 0), *(Read("r", P, at, value) for at, value in enumerate([b"a", b"b", b"c"]))]
    history.ends = [EndSeen("e", P, 1, 1, 2), EndSeen("e", P, 3, 3, 4)]
    history.final = {P: {0: b"a", 1: b"b", 2: b"c"}}
    for name, value in changes.items():
        setattr(history, name, value)
    return history


def test_a_right_history_passes() -> None:
    assert check(three()) == []


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        (
            three(final={P: {0: b"a", 2: b"c"}}, moves=[]),
            (Kind.LOST, "t-0 at 1: b'b' was acknowledged to p at 3 ms, and is not there at last"),
        ),
        (
            three(final={P: {0: b"a", 1: b"b"}}, moves=[]),
            (Kind.UNSEEN, "t-0 at 2: b'c' was acknowledged to p at 5 ms, and is not there at last"),
        ),
        (
            three(final={P: {0: b"a", 1: b"b", 2: b"c", 3: b"a"}}),
            (Kind.DUPLICATE, "b'a' was acknowledged to p at 1 ms at t-0 at 0, and there at last at t-0 at 3"),
        ),
        (
            three(sends=[sent(b"b", None), sent(b"a", None), sent(b"c", 2)], moves=[]),
            (Kind.REORDERED, "t-0: p sent b'b' before b'a', and they lie at 1 and 0"),
        ),
        (
            three(ends=[EndSeen("e", P, 3, 1, 2), EndSeen("f", P, 2, 3, 4)]),
            (Kind.END_WENT_BACK, "t-0: f was told 2 at 4 ms, after e was told 3 at 2 ms"),
        ),
        (
            three(moves=[Assigned("r", P, 0), Read("r", P, 0, b"a"), Read("r", P, 2, b"c", 7)]),
            (Kind.POLL_SKIP, "t-0: r read b'c' at 2 (7 ms), without 1 before it, first b'b' at 1"),
        ),
        (
            three(moves=[Assigned("r", P, 0), Read("r", P, 0, b"a"), Read("r", P, 0, b"a", 7)]),
            (Kind.NONMONOTONIC_POLL, "t-0: r read b'a' at 0 (7 ms), where the next one was to be 1"),
        ),
        (
            three(moves=[Read("r", P, 3, b"x", 7)]),
            (Kind.UNKNOWN_VALUE, "t-0 at 3: b'x' was read by r at 7 ms; nobody sent it there"),
        ),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, tuple) else "",
)
def test_an_anomaly_is_told_with_what_was_seen(history: History, expected: tuple[Kind, str]) -> None:
    assert Anomaly(*expected) in check(history)


def test_what_was_never_promised_may_be_gone() -> None:
    """No answer; an answer of the leader alone; a value that only a reader of uncommitted records saw."""
    refused = Send("p", P, b"refused", SendOutcome.FAILED)
    leader_alone = Send("hasty", P, b"tail", SendOutcome.ACKED, 3, is_lasting=False)
    aborted = Send("q", P, b"aborted", SendOutcome.ACKED, 4, 10, 11, "aborted one")
    history = three()
    history.sends += [sent(b"unknown", None), refused, leader_alone, aborted]
    history.moves.append(Read("u", P, 4, b"aborted"))
    history.uncommitted_readers = {"u"}
    history.transactions = {"aborted one": TransactionOutcome.ABORTED}
    assert check(history) == []


def test_what_compaction_removes_is_not_lost() -> None:
    assert check(three(final={P: {2: b"c"}}, compacted={"t"}, moves=[])) == []


def test_a_reader_that_was_assigned_anew_may_go_back() -> None:
    history = three()
    history.moves += [Assigned("r", P, 1), Read("r", P, 1, b"b"), Assigned("r", P, None), Read("r", P, 0, b"a")]
    assert check(history) == []


def test_sends_at_the_same_time_may_be_told_any_offsets() -> None:
    sends = [sent(b"a", 1, 0, producer="p"), sent(b"b", 0, 0.5, producer="q"), sent(b"c", 2, 4)]
    assert check(three(sends=sends, final={P: {1: b"a", 0: b"b", 2: b"c"}}, moves=[])) == []


def test_a_transaction_of_unknown_end_is_there_whole_or_not_at_all() -> None:
    sends = [sent(b"a", 0, 0, "one"), sent(b"b", 1, 2, "one"), sent(b"c", 2, 4, "one")]
    assert check(three(sends=sends)) == []
    assert check(three(sends=sends, final={P: {}}, moves=[])) == []
    (torn,) = check(three(sends=sends, final={P: {0: b"a", 2: b"c"}}, moves=[]))
    assert torn.kind is Kind.TORN
    assert "one: 2 of 3 values are there at last: b'a' in ('t', 0), not b'b'" in torn.what


def test_transactions_that_read_from_each_other_in_a_line_are_no_cycle() -> None:
    sends = [sent(b"a", 0, 0, "one"), sent(b"b", 1, 2, "two"), sent(b"c", 2, 4, "three")]
    moves = [Read("r", P, 0, b"a", 1, "two"), Read("r", P, 1, b"b", 3, "three"), Read("s", P, 0, b"a", 3, "three")]
    done = dict.fromkeys(("one", "two", "three"), TransactionOutcome.COMMITTED)
    assert check(three(sends=sends, moves=moves, transactions=done)) == []
    backwards = Read("r", P, 2, b"c", 0.5, "one")
    (cycle,) = check(three(sends=sends, moves=[*moves, backwards], transactions=done))
    read = "read what was written by"
    assert cycle == Anomaly(Kind.CYCLE, f"one {read} three {read} one")


def test_long_values_are_shown_in_short() -> None:
    long = b"x" * 100
    (anomaly,) = check(three(sends=[*three().sends, sent(long, 3, 6)]))
    assert f"'{'x' * 40}...' was" in anomaly.what


def test_the_summary_shows_a_few_of_each_kind() -> None:
    found = [Anomaly(Kind.LOST, f"value {number}") for number in range(7)] + [Anomaly(Kind.CYCLE, "round")]
    lines = summary(found).splitlines()
    assert lines == ["lost (7)", *(f"  value {number}" for number in range(5)), "cycle (1)", "  round"]


@given(st.integers(0, 2**32))
def test_histories_of_a_log_that_never_fails_pass(seed: int) -> None:
    assert check(PerfectLog(Random(seed)).live(STEPS)) == []


@pytest.mark.parametrize("planting", PLANTINGS, ids=lambda planting: planting.__name__)
@given(seed=st.integers(0, 2**32))
def test_whatever_is_planted_is_found(planting: Planting, seed: int) -> None:
    """In the first history from this seed on that has a place for it."""
    random = Random(seed)
    for _ in range(200):
        history = PerfectLog(random).live(random.choice((STEPS, 8)))
        try:
            planting(history, random)
        except LookupError:
            continue
        assert PLANTINGS[planting] in {anomaly.kind for anomaly in check(history)}
        return
    raise AssertionError("no history has a place for it")
