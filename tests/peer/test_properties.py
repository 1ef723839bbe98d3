"""A property's number is in its range and its word has a meaning, or is refused in one sentence."""

import pytest

from lamina.peer.properties import MAX_INT, one_of, whole_number


class Refused(Exception):
    pass


def number(text: str) -> int:
    return whole_number(Refused, {"linger.ms": text}, "linger.ms", 5, least=1, most=10)


def test_a_property_that_is_not_given_is_its_default() -> None:
    assert whole_number(Refused, {}, "linger.ms", 5) == 5


def test_both_ends_of_the_range_are_in_it() -> None:
    assert [number(" 1 "), number("10")] == [1, 10]
    assert whole_number(Refused, {"x": str(MAX_INT)}, "x", 0) == MAX_INT


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "linger.ms: '' is not a whole number"),
        ("1.5", "linger.ms: '1.5' is not a whole number"),
        ("0", "linger.ms: 0 is not between 1 and 10"),
        ("11", "linger.ms: 11 is not between 1 and 10"),
    ],
)
def test_anything_else_is_refused_in_a_sentence_with_its_name(text: str, sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        number(text)
    assert str(refused.value) == sentence


def test_a_word_means_something_however_it_is_written() -> None:
    words = {"all": -1, "1": 1}
    assert [one_of(Refused, given, "acks", "all", words) for given in ({}, {"acks": " ALL "}, {"acks": "1"})] == [
        -1,
        -1,
        1,
    ]
    with pytest.raises(Refused) as refused:
        one_of(Refused, {"acks": "some"}, "acks", "all", words)
    assert str(refused.value) == "acks: 'some' is not one of all, 1"
