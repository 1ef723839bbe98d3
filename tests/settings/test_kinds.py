import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.settings.kinds import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    SHORT,
    Kind,
    at_least,
    between,
    each_of,
    one_of,
)

WORDS = st.text(alphabet=st.characters(codec="utf-8", exclude_characters=","), min_size=1).filter(
    lambda word: word == word.strip("".join(map(chr, range(0x21))))
)


@pytest.mark.parametrize(("kind", "bits"), [(SHORT, 16), (INT, 32), (LONG, 64)])
def test_a_whole_number_must_fit_its_width(kind: Kind[int], bits: int) -> None:
    largest = 2 ** (bits - 1) - 1
    assert kind.parse(str(largest)) == largest
    assert kind.parse(str(-largest - 1)) == -largest - 1
    for text in (str(largest + 1), str(-largest - 2)):
        with pytest.raises(ValueError, match=f"must be a whole number of {bits} bits"):
            kind.parse(text)


@pytest.mark.parametrize("text", ["", "1_000", "1.0", "0x10", "1 000", "١", "one", "9" * 5000])
def test_what_java_would_not_take_for_a_whole_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a whole number"):
        LONG.parse(text)


def test_a_plus_sign_and_leading_zeros_are_taken() -> None:
    assert INT.parse("+007") == 7


@pytest.mark.parametrize(("text", "value"), [("true", True), ("TRUE", True), ("False", False)])
def test_a_boolean_may_be_written_in_any_case(text: str, value: bool) -> None:
    assert BOOLEAN.parse(text) is value


@pytest.mark.parametrize("text", ["yes", "1", ""])
def test_nothing_but_true_and_false_is_a_boolean(text: str) -> None:
    with pytest.raises(ValueError, match="must be true or false"):
        BOOLEAN.parse(text)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1e999999", "1,5", "", "."])
def test_a_double_is_a_finite_number(text: str) -> None:
    with pytest.raises(ValueError, match="must be a number"):
        DOUBLE.parse(text)


def test_a_list_is_split_at_commas_and_trimmed() -> None:
    assert LIST.parse("a , b,c") == ("a", "b", "c")
    assert LIST.parse("") == ()


def test_a_list_has_no_empty_entries() -> None:
    with pytest.raises(ValueError, match="without empty entries"):
        LIST.parse("a,,b")


@given(st.lists(WORDS))
def test_a_list_reads_back_what_it_wrote(words: list[str]) -> None:
    assert LIST.parse(LIST.format(tuple(words))) == tuple(words)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_reads_back_what_it_wrote(value: float) -> None:
    assert DOUBLE.parse(DOUBLE.format(value)) == value


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_a_long_reads_back_what_it_wrote(value: int) -> None:
    assert LONG.parse(LONG.format(value)) == value


@given(st.booleans())
def test_a_boolean_reads_back_what_it_wrote(value: bool) -> None:
    assert BOOLEAN.parse(BOOLEAN.format(value)) is value


def test_rules_say_what_they_want() -> None:
    assert at_least(1024 * 1024).text == "at least 1048576 (1 MiB)"
    assert between(0, 1).text == "between 0 and 1"
    assert one_of("a", "b", "c").text == "a, b or c"
    assert each_of("compact", "delete").text == "a list of compact or delete"


def test_ranges_hold_at_their_ends() -> None:
    assert at_least(4).holds(4)
    assert not at_least(4).holds(3)
    assert between(0, 1).holds(0)
    assert between(0, 1).holds(1)
    assert not between(0, 1).holds(1.01)


def test_names_are_matched_exactly() -> None:
    """Fact 3."""
    assert each_of("compact", "delete").holds(("delete", "compact"))
    assert not each_of("compact", "delete").holds(("Compact",))
    assert not each_of("compact", "delete").holds(("compact", "none"))
    assert not one_of("CreateTime").holds("createtime")
