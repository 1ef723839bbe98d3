"""What members tell each other through the broker."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.coordinators.records.consumer_protocol import (
    Assignment,
    Subscription,
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from lamina.errors import CorruptMessage
from tests.coordinators.strategies import int32s, names, texts

owned = st.dictionaries(texts, st.lists(int32s, max_size=4).map(tuple), max_size=3)


@given(names, st.none() | st.binary(max_size=9), owned, int32s, st.none() | texts)
def test_a_subscription_is_read_back(
    topics: tuple[str, ...],
    user_data: bytes | None,
    owned: dict[str, tuple[int, ...]],
    generation: int,
    rack: str | None,
) -> None:
    whole = Subscription(3, topics, user_data, owned, generation, rack)
    assert read_subscription(write_subscription(whole)) == whole
    assert read_subscription(write_subscription(whole._replace(version=1))) == Subscription(1, topics, user_data, owned)
    assert read_subscription(write_subscription(whole._replace(version=0))) == Subscription(0, topics, user_data)


@given(owned)
def test_an_assignment_is_read_back(assignment: dict[str, tuple[int, ...]]) -> None:
    assert read_assignment(write_assignment(assignment, 3)) == Assignment(assignment)


def test_no_bytes_assign_nothing() -> None:
    assert read_assignment(b"") == Assignment()


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    data = (9).to_bytes(2) + write_subscription(Subscription(3, ("a",)))[2:] + b"more"
    assert read_subscription(data).topics == ("a",)


@given(st.binary(max_size=40))
def test_other_bytes_are_corrupt_and_nothing_else(data: bytes) -> None:
    for read in (read_subscription, read_assignment):
        try:
            read(data)
        except CorruptMessage as error:
            assert str(error)


def test_a_count_that_cannot_be_is_refused_before_anything_is_made() -> None:
    with pytest.raises(CorruptMessage):
        read_subscription(b"\0\0\x7f\xff\xff\xff")
