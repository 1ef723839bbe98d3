"""Ranges, and what is lost between what was asked for and what there is."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.arrow.errors import DataLoss, ReadError
from lamina.arrow.losses import Loss
from pyspark_lamina.offsets import Offsets, from_checkpoint, to_json, topic_ids_in
from pyspark_lamina.planning import (
    count_between,
    initial_offsets,
    limit_offsets,
    losses_since,
    on_loss,
    partitions_from_their_start,
    ranges_between,
    ranges_within,
)

A, B, C = ("t", 0), ("t", 1), ("t", 2)


STRICT = on_loss(fails=True)


def test_ranges_without_offsets_are_left_out() -> None:
    found = ranges_within({A: 2, B: 5, C: 9}, {A: 4, B: 5, C: 3}, {A: 0, B: 5, C: 0}, {A: 9, B: 5, C: 9}, STRICT)
    assert found == {A: (2, 4)}


@pytest.mark.parametrize(
    ("start", "end", "sentence", "skipped"),
    [
        (3, 9, "t-0 begins at offset 5, and 3 was asked for", "skipped offsets 3 to 4 of t-0"),
        (5, 11, "t-0 ends at offset 10, and 11 was asked for", "skipped offset 10 of t-0"),
        (12, 15, "t-0 ends at offset 10, and 15 was asked for", "skipped offsets 12 to 14 of t-0"),
        (1, 3, "t-0 begins at offset 5, and 1 was asked for", "skipped offsets 1 to 2 of t-0"),
    ],
)
def test_what_is_not_there_is_lost_or_left_out(start: int, end: int, sentence: str, skipped: str) -> None:
    with pytest.raises(DataLoss, match=rf"^data loss: {sentence}; .*failOnDataLoss=false reads what is left$"):
        ranges_within({A: start}, {A: end}, {A: 5}, {A: 10}, STRICT)
    losses: list[Loss] = []
    found = ranges_within({A: start}, {A: end}, {A: 5}, {A: 10}, losses.append)
    assert found == ({A: (max(start, 5), min(end, 10))} if max(start, 5) < min(end, 10) else {})
    assert [(loss.reason, loss.skipped) for loss in losses] == [(sentence, skipped)]


def test_a_range_before_the_log_start_that_is_empty_loses_nothing() -> None:
    assert ranges_within({A: 3}, {A: 3}, {A: 5}, {A: 10}, STRICT) == {}


def test_a_stream_begins_within_the_log() -> None:
    asked = {A: 0, B: 30, C: 7}
    limits = dict.fromkeys(asked, 5), dict.fromkeys(asked, 20)
    losses: list[Loss] = []
    assert initial_offsets(asked, *limits, losses.append) == {A: 5, B: 20, C: 7}
    assert [loss.skipped for loss in losses] == ["skipped offsets 0 to 4 of t-0", "skipped nothing"]
    with pytest.raises(DataLoss, match=r"^data loss: t-0 holds offsets from 5 to 20, and 0 was asked for"):
        initial_offsets(asked, *limits, STRICT)
    assert initial_offsets({C: 20}, *limits, STRICT) == {C: 20}


def test_a_stream_notices_what_is_gone() -> None:
    def told(reached: Offsets, latest: Offsets, *made_again: str) -> list[tuple[str, str]]:
        return [(loss.reason, loss.skipped) for loss in losses_since(reached, latest, made_again)]

    skipped = "skipped t-0 from offset 5 on"
    assert told({A: 5}, {A: 5, B: 3}) == []
    assert told({A: 5, B: 0}, {B: 9}) == [("t-0 cannot be found any more", skipped)]
    assert told({A: 5}, {A: 4}) == [("t-0 ends at offset 4, and the query has come to 5", skipped)]
    again = "topic t was deleted and made again (its topic id is another one)"
    assert told({A: 5}, {A: 9}, "t") == [(again, skipped)]


def test_a_loss_that_is_tolerated_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert ranges_within({A: 3}, {A: 9}, {A: 5}, {A: 10}, on_loss(fails=False)) == {A: (5, 9)}
    sentence = "data loss: t-0 begins at offset 5, and 3 was asked for; skipped offsets 3 to 4 of t-0"
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [("WARNING", sentence)]


def test_new_partitions_and_those_made_again_are_read_from_their_start() -> None:
    assert partitions_from_their_start({A: 5, B: 5}, {A: 5, B: 4, C: 1}, {}) == {B, C}
    assert partitions_from_their_start({A: 5}, {A: 9}, {A: 5}) == {A}
    # One batch later the new life is what is read.
    assert partitions_from_their_start({A: 9}, {A: 12}, {A: 5}) == set()


STARTS = st.dictionaries(st.sampled_from([A, B, C]), st.integers(0, 50), min_size=1)


@given(STARTS, st.lists(st.integers(0, 40), min_size=3, max_size=3), st.integers(1, 60))
def test_a_limit_of_offsets_starves_nobody_and_is_kept_but_for_that(
    starts: dict[tuple[str, int], int], lengths: list[int], most: int
) -> None:
    ends = {where: start + lengths[where[1]] for where, start in starts.items()}
    limited = limit_offsets(starts, ends, most)
    assert limited.keys() == ends.keys()
    taken = {where: limited[where] - starts[where] for where in ends}
    assert all((taken[where] > 0) == (ends[where] > starts[where]) for where in ends)
    assert all(limited[where] <= ends[where] for where in ends)
    assert count_between(starts, limited) <= most + sum(1 for count in taken.values() if count == 1)
    assert ranges_between(starts, limited).keys() == {where for where, count in taken.items() if count}


def test_offsets_are_the_json_of_sparks_own_source_and_equal_ones_are_equal_text() -> None:
    offsets = {("b", 0): 1, ("a", 10): 2, ("a", 9): 3}
    told = to_json(offsets)
    assert str(told) == "{'a': {'9': 3, '10': 2}, 'b': {'0': 1}}"
    assert from_checkpoint(told) == offsets
    ids = {"a": UUID(int=5), "b": None}
    told = to_json(offsets, ids)
    assert str(told) == "{'a': {'9': 3, '10': 2}, 'b': {'0': 1}, 'a@AAAAAAAAAAAAAAAAAAAABQ': {}}"
    assert (from_checkpoint(told), topic_ids_in(told)) == (offsets, {"a": UUID(int=5)})
    assert topic_ids_in({"a": {"0": 1}, "a@AA": {}}) == {}
    for wrong in ({"index": 5}, {"t": {"x": 1}}, {"t": {"0": "1"}}, {"t": {"-1": 1}}):
        with pytest.raises(ReadError, match=r"^the checkpoint holds no offsets of topics but "):
            from_checkpoint(wrong)
