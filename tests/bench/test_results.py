"""Medians, ranges, and who may be called ahead."""

import math
from dataclasses import replace

import pytest

from bench.results import Better, Pair, Spread, disturbed, spread
from tests.bench.comparisons import PAIR, result


def test_a_figure_is_the_median_with_the_least_and_the_most_of_its_rounds() -> None:
    assert spread([3.0, 1.0, 2.0]) == Spread(median=2.0, least=1.0, most=3.0)
    assert result([3, 1, 2], [30, 10, 20]).of("lamina") == Spread(20, 10, 30)


def test_a_contestant_that_did_not_take_part_has_no_figure_and_no_ratio() -> None:
    found = result([1, 1, 1], [2, 2, 2])
    other = Pair(rival="kafka-tuned", ours="lamina")
    assert (found.of("kafka-tuned"), found.ratio(other), found.ahead(other)) == (None, None, None)


def test_a_ratio_is_the_median_of_those_of_the_rounds_in_their_order() -> None:
    assert result([1, 2, 4], [2, 6, 8]).ratio(PAIR) == Spread(median=2.0, least=2.0, most=3.0)


def test_whoever_has_something_where_the_rival_has_nothing_is_told_apart() -> None:
    found = result([0, 0, 0], [0.01, 0.01, 0.01], "less")
    assert found.ratio(PAIR) == Spread(math.inf, math.inf, math.inf)
    assert found.ahead(PAIR) == "rival"
    assert result([0, 0, 0], [0, 0, 0], "less").ahead(PAIR) == "even"


def test_a_repeated_trial_that_gives_something_else_shows_a_disturbed_machine() -> None:
    first = result([10, 10, 10], [20, 20, 20])
    last = replace(result([11, 11, 11], [30, 30, 30]), trial="trial-again")
    assert list(disturbed([first])) == []
    assert list(disturbed([first, last])) == [(first.figure, "lamina", 20, 30)]


@pytest.mark.parametrize(
    ("lamina", "better", "ahead"),
    [
        ([11, 12, 13], "more", "ours"),
        ([9, 8, 7], "more", "rival"),
        ([11, 12, 13], "less", "rival"),
        ([9, 8, 7], "less", "ours"),
        ([9, 20, 20], "more", "disagree"),
        ([10, 20, 20], "more", "disagree"),
        ([1, 1, 11], "less", "disagree"),
        ([9, 10, 11], "more", "disagree"),
        ([9.9, 10, 10.1], "more", "even"),
        ([10.1, 10.1, 12], "more", "even"),
        ([10.1, 10.1, 10.1], "more", "even"),
        ([10.3, 10.3, 10.3], "more", "ours"),
    ],
)
def test_only_who_was_noticeably_better_in_every_round_is_ahead(
    lamina: list[float], better: Better, ahead: str
) -> None:
    assert result([10, 10, 10], lamina, better).ahead(PAIR) == ahead
