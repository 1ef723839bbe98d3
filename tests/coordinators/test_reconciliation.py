"""The step towards a target, alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.coordinators.partitions_by_topic import (
    difference,
    each,
    gathered,
    intersection,
    is_subset,
    normal,
    overlap,
    union,
)
from lamina.coordinators.reconciliation import MemberState, is_reconciled, reconcile
from lamina.coordinators.records.group_records import CurrentAssignmentValue, TopicIdPartitions
from lamina.errors import FencedMemberEpoch

A, B = b"a" * 16, b"b" * 16
STABLE, UNREVOKED, UNRELEASED = (state.value for state in list(MemberState)[:3])
PAIRS = st.sets(st.tuples(st.sampled_from((A, B)), st.integers(0, 3)))


def step(
    current: CurrentAssignmentValue,
    epoch: int,
    target: TopicIdPartitions,
    owned: TopicIdPartitions | None = None,
    held: TopicIdPartitions | None = None,
) -> CurrentAssignmentValue:
    others = set(each(held or {}))
    return reconcile(current, epoch, target, owned, lambda *partition: partition in others)


def test_a_member_that_has_its_target_stays() -> None:
    current = CurrentAssignmentValue(3, 2, STABLE, {A: (0,)}, {})
    assert step(current, 3, {A: (0,)}) is current
    assert is_reconciled(current, 3)
    assert not is_reconciled(current, 4)


def test_a_member_whose_target_did_not_change_moves_to_the_new_epoch() -> None:
    current = CurrentAssignmentValue(3, 2, STABLE, {A: (0,)}, {})
    assert step(current, 5, {A: (0,)}) == CurrentAssignmentValue(5, 3, STABLE, {A: (0,)}, {})


def test_a_member_first_gives_up_and_stays_at_its_epoch() -> None:
    current = CurrentAssignmentValue(3, 2, STABLE, {A: (0, 1)}, {})
    expected = CurrentAssignmentValue(3, 3, UNREVOKED, {A: (0,)}, {A: (1,)})
    assert step(current, 4, {A: (0,), B: (0,)}, owned=None) == expected
    assert step(current, 4, {A: (0,), B: (0,)}, owned={A: (0, 1)}) == expected


def test_a_member_waits_until_it_says_that_it_gave_up() -> None:
    current = CurrentAssignmentValue(3, 3, UNREVOKED, {A: (0,)}, {A: (1,)})
    assert step(current, 4, {A: (0,)}) is current
    assert step(current, 4, {A: (0,)}, owned={A: (1,)}) is current
    assert step(current, 4, {A: (0,)}, owned={A: (0,)}) == CurrentAssignmentValue(4, 3, STABLE, {A: (0,)}, {})


def test_a_member_that_must_give_up_more_meanwhile_moves_by_one_epoch() -> None:
    current = CurrentAssignmentValue(3, 3, UNREVOKED, {A: (0, 2)}, {A: (1,)})
    assert step(current, 9, {A: (0,)}, owned={A: (0, 2)}) == CurrentAssignmentValue(
        4, 3, UNREVOKED, {A: (0,)}, {A: (2,)}
    )


def test_a_member_gets_what_is_free_and_waits_for_the_rest() -> None:
    current = CurrentAssignmentValue(3, 2, STABLE, {}, {})
    waiting = step(current, 4, {A: (0, 1)}, held={A: (1,)})
    assert waiting == CurrentAssignmentValue(4, 3, UNRELEASED, {A: (0,)}, {})
    assert step(waiting, 4, {A: (0, 1)}, held={A: (0, 1)})[2:] == waiting[2:]
    assert step(waiting, 4, {A: (0, 1)}) == CurrentAssignmentValue(4, 4, STABLE, {A: (0, 1)}, {})


def test_what_a_member_gives_up_and_shall_have_again_comes_back_in_two_steps() -> None:
    current = CurrentAssignmentValue(3, 3, UNREVOKED, {}, {A: (0,)})
    released = step(current, 5, {A: (0,)}, owned={}, held={A: (0,)})
    assert released == CurrentAssignmentValue(5, 3, UNRELEASED, {}, {})
    assert step(released, 5, {A: (0,)}).assigned == {A: (0,)}


def test_a_state_of_a_later_version_is_fenced_until_the_member_has_nothing() -> None:
    assert MemberState.of(99) is MemberState.UNKNOWN
    current = CurrentAssignmentValue(3, 3, 99, {A: (0,)}, {})
    for owned in (None, {A: (0,)}):
        with pytest.raises(FencedMemberEpoch):
            step(current, 5, {A: (0,)}, owned)
    assert step(current, 5, {A: (0,)}, {}) == CurrentAssignmentValue(5, 3, STABLE, {A: (0,)}, {})


@given(left=PAIRS, right=PAIRS)
def test_partitions_are_sets_in_one_form(left: set[tuple[bytes, int]], right: set[tuple[bytes, int]]) -> None:
    one, other = gathered(left), gathered(right)
    assert set(each(one)) == left
    assert union(one, other) == gathered(left | right)
    assert intersection(one, other) == gathered(left & right)
    assert difference(one, other) == gathered(left - right)
    assert is_subset(one, other) == (left <= right)
    assert overlap(one, other) == bool(left & right)
    assert normal({A: (2, 1, 1), B: ()}) == {A: (1, 2)}
