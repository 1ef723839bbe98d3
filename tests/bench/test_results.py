"""Medians, ranges, and who may be called ahead."""

import pytest

from bench.results import Better, Pair, Spread, spread
from tests.bench.comparisons import PAIR, result


def test_a_figure_is_the_median_with_the_least_and_the_most_of_its_rounds() -> None:
    assert spread([3.0, 1.0, 2.0]) == Spread(median=2.0, least=1.0, most=3.0)
    assert result([3, 1, 2], [30, 10, 20]).of("lamina") == Spread(20, 10, 30)


def test_a_contestant_that_did_not_take_part_has_no_figure_and_no_ratio() -> None:
    found = result([1, 1, 1], [2, 2, 2])
    other = Pair(rival="kafka-tuned", ours="lamina")
    assert (found.of("kafka-tuned"), found.ratio(other), found.ahead(other)) == (None, None, None)


def test_a_ratio_is_of_the_medians_and_its_range_of_the_rounds_in_their_order() -> None:
    assert result([1, 2, 4], [2, 6, 8]).ratio(PAIR) == Spread(median=3.0, least=2.0, most=3.0)


def test_there_is_no_ratio_to_nothing() -> None:
    assert result([0, 0.01, 0.01], [0.01, 0.01, 0.01]).ratio(PAIR) is None


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
