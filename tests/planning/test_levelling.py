"""Evening out items of which each may be with some owners only."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from lamina.planning.levelling import level

OWNERS = range(5)


def levelled(items: list[tuple[frozenset[int], int]]) -> list[int]:
    """Where each item is in the end; each may be with the owners of its set, and begins with one of them."""
    where = [start for _, start in items]
    loads = Counter(where)
    moves = 0

    def find(source: int, target: int, but: frozenset[int]) -> int | None:
        return next(
            (
                number
                for number, (allowed, _) in enumerate(items)
                if where[number] == source and target in allowed and number not in but
            ),
            None,
        )

    def move(number: int, source: int, target: int) -> None:
        nonlocal moves
        assert where[number] == source
        assert target in items[number][0]
        where[number] = target
        loads[source] -= 1
        loads[target] += 1
        moves += 1
        assert moves < 10_000

    level(OWNERS, loads, find, move)
    assert loads == Counter(where)
    return where


allowed_sets = st.frozensets(st.sampled_from(OWNERS), min_size=1)
placed = allowed_sets.flatmap(lambda allowed: st.tuples(st.just(allowed), st.sampled_from(sorted(allowed))))


def spread_of(where: list[int]) -> int:
    counts = Counter(where)
    return max(counts[one] for one in OWNERS) - min(counts[one] for one in OWNERS)


def test_through_others_where_there_is_no_direct_way() -> None:
    """Owner 0 has three items that only 1 may have too, and what 1 has may go to 2, 3 and 4."""
    items = [(frozenset({0, 1}), 0)] * 3 + [(frozenset({1, 2, 3, 4}), 1)] * 2
    assert sorted(Counter(levelled(items)).values()) == [1, 1, 1, 2]


@given(st.lists(placed, max_size=30))
def test_the_sum_of_squares_does_not_depend_on_where_items_began(
    items: list[tuple[frozenset[int], int]],
) -> None:
    """Only the best arrangements have no way left to improve them."""
    others = [(allowed, max(allowed)) for allowed, _ in items]
    first, second = (sorted(Counter(levelled(one)).values()) for one in (items, others))
    assert sum(count * count for count in first) == sum(count * count for count in second)


@given(st.lists(st.tuples(st.just(frozenset(OWNERS)), st.sampled_from(OWNERS)), max_size=40))
def test_items_that_may_be_anywhere_are_even_within_one(items: list[tuple[frozenset[int], int]]) -> None:
    assert spread_of(levelled(items)) <= 1
