"""Numbers as options take them."""

import click
import pytest

from lamina.cli.options.numbers import OFFSET_MAX, decimal, whole
from tests.cli.running import Lamina


def test_whole_numbers_within_their_bounds_are_taken() -> None:
    assert [whole()(given) for given in ("0", "+7", OFFSET_MAX)] == [0, 7, OFFSET_MAX]
    assert whole(-5, 5)("-5") == -5


@pytest.mark.parametrize("given", ["", "x", "1.5", "-1", "11", "1e3", "²", "9" * 30])
def test_another_number_is_refused_with_the_bounds(given: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a whole number from 0 to 10"):
        whole(largest=10)(given)


@pytest.mark.parametrize("given", ["", "x", "0", "-1", "inf", "nan", "0.05", "101"])
def test_a_decimal_number_is_above_zero_and_finite(given: str) -> None:
    assert decimal(0.1, 100)("0.1") == 0.1
    with pytest.raises(click.BadParameter, match=r"is not a number from 0\.1 to 100"):
        decimal(0.1, 100)(given)


def test_the_sentence_names_the_option_and_help_shows_no_bounds(lamina: Lamina) -> None:
    outcome = lamina("topics", "create", "t", "--partitions", "0")
    assert outcome.status == 2
    assert outcome.err.startswith(
        "lamina: invalid value for '--partitions': '0' is not a whole number from 1 to 100000; "
    )
    assert "<=x" not in lamina("topics", "create", "--help").out
