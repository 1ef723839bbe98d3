"""Regular expressions of members."""

import pytest

from lamina.coordinators.patterns import compile_pattern, matching
from lamina.errors import InvalidRegularExpression


def test_the_whole_name_has_to_match() -> None:
    assert matching("foo.*", ["xfoo", "foobar", "foo", "barfoo"]) == ("foo", "foobar")


@pytest.mark.parametrize("text", ["(", "[a", "a**", r"\1(a)", "(?=a)", "a{1001}", "x" * 20_000])
def test_what_re2_does_not_take_is_an_invalid_regular_expression(text: str) -> None:
    with pytest.raises(InvalidRegularExpression) as error:
        compile_pattern(text)
    assert "\n" not in str(error.value)


def test_an_expression_that_ruins_other_engines_takes_no_time() -> None:
    """Backtracking would take 2**100 steps: it would never end."""
    assert matching("(a+)+$", ["a" * 100 + "!", "a" * 100]) == ("a" * 100,)


def test_ten_thousand_names_are_looked_through_by_such_an_expression() -> None:
    names = [f"{'a' * 100}-{number}" for number in range(10_000)]
    assert matching("^(a+)+$", [*names, "a" * 100]) == ("a" * 100,)
