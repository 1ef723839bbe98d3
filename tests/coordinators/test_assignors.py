"""Exactly one subscribed owner for every partition, balance, and nothing moves without need."""

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.coordinators.assignors import ASSIGNORS, MemberSubscription, _keep, assign_ranges, assign_uniform
from lamina.coordinators.records.group_records import TopicIdPartitions

Members = dict[str, MemberSubscription]
Counts = dict[bytes, int]


def topic(number: int) -> bytes:
    return bytes([number]) * 16


@st.composite
def worlds(draw: st.DrawFn, *, alike: bool = False) -> tuple[Members, Counts]:
    """Members with any subscriptions and any, even impossible, earlier assignments."""
    counts = {topic(n): draw(st.integers(1, 9)) for n in range(draw(st.integers(1, 4)))}
    topics = st.frozensets(st.sampled_from(sorted(counts)))
    common = draw(topics)
    assigned = st.dictionaries(
        st.sampled_from([*sorted(counts), topic(99)]),
        st.sets(st.integers(0, 11), max_size=6).map(lambda indexes: tuple(sorted(indexes))),
        max_size=3,
    )
    members = {
        f"m{n}": MemberSubscription(
            common if alike else draw(topics), draw(st.none() | st.just(f"i{9 - n}")), None, draw(assigned)
        )
        for n in range(draw(st.integers(1, 6)))
    }
    return members, counts


def owners(assignment: Mapping[str, TopicIdPartitions]) -> Counter[tuple[bytes, int]]:
    return Counter((t, index) for mine in assignment.values() for t, indexes in mine.items() for index in indexes)


def sizes(assignment: Mapping[str, TopicIdPartitions]) -> dict[str, int]:
    return {member: sum(map(len, mine.values())) for member, mine in assignment.items()}


@pytest.mark.parametrize("name", ASSIGNORS)
@given(world=worlds())
def test_every_partition_of_a_subscribed_topic_has_one_owner_who_subscribes_to_it(
    name: str, world: tuple[Members, Counts]
) -> None:
    members, counts = world
    assignment = ASSIGNORS[name](members, counts)
    assert assignment.keys() == members.keys()
    wanted = {t for subscription in members.values() for t in subscription.topics}
    assert owners(assignment) == Counter((t, index) for t in wanted for index in range(counts[t]))
    for member, mine in assignment.items():
        assert mine.keys() <= members[member].topics
        assert all(indexes == tuple(sorted(indexes)) and indexes for indexes in mine.values())


@given(worlds())
def test_range_gives_runs_that_differ_by_at_most_one(world: tuple[Members, Counts]) -> None:
    members, counts = world
    assignment = assign_ranges(members, counts)
    for t in counts:
        runs = [assignment[m].get(t, ()) for m, subscription in members.items() if t in subscription.topics]
        assert all(run == tuple(range(run[0], run[0] + len(run))) for run in runs if run)
        if runs:
            assert max(map(len, runs)) - min(map(len, runs)) <= 1


def test_range_cuts_topics_with_as_many_partitions_alike_and_puts_static_members_first() -> None:
    both = frozenset({topic(1), topic(2)})
    members = {
        "a": MemberSubscription(both, None, None, {}),
        "b": MemberSubscription(both, "second", None, {}),
        "c": MemberSubscription(both, "first", None, {}),
    }
    assignment = assign_ranges(members, {topic(1): 4, topic(2): 4})
    assert assignment["c"] == {topic(1): (0, 1), topic(2): (0, 1)}
    assert assignment["b"] == {topic(1): (2,), topic(2): (2,)}
    assert assignment["a"] == {topic(1): (3,), topic(2): (3,)}


@given(worlds(alike=True))
def test_uniform_gives_everybody_alike_where_all_subscribe_to_the_same(world: tuple[Members, Counts]) -> None:
    number = sizes(assign_uniform(*world)).values()
    assert max(number) - min(number) <= 1


@given(worlds(alike=True))
def test_uniform_moves_no_more_than_balance_asks_for(world: tuple[Members, Counts]) -> None:
    """What everybody has beyond its share, and no more; those who have most get the larger shares."""
    members, counts = world
    kept_before = _keep(members, counts)
    assignment = assign_uniform(members, counts)
    moved = sum(index not in assignment[member].get(t, ()) for member, kept in kept_before.items() for t, index in kept)
    total = sum(sizes(assignment).values())
    quota, extra = divmod(total, len(members))
    loads = sorted((len(kept) for kept in kept_before.values()), reverse=True)
    assert moved == sum(max(load - quota - (number < extra), 0) for number, load in enumerate(loads))


@given(worlds())
def test_uniform_leaves_no_move_that_would_make_two_members_more_alike(world: tuple[Members, Counts]) -> None:
    members, counts = world
    assignment = assign_uniform(members, counts)
    load = sizes(assignment)
    for giver, mine in assignment.items():
        for t in mine:
            for taker in members:
                if t in members[taker].topics:
                    assert load[giver] - load[taker] < 2


@given(worlds())
def test_uniform_assigned_again_changes_nothing(world: tuple[Members, Counts]) -> None:
    members, counts = world
    first = assign_uniform(members, counts)
    again = {member: subscription._replace(assigned=first[member]) for member, subscription in members.items()}
    assert assign_uniform(again, counts) == first


def test_nobody_gets_nothing() -> None:
    for assign in ASSIGNORS.values():
        assert assign({}, {topic(1): 3}) == {}
