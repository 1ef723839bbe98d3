"""Who leads, among the replicas that there are."""

from collections.abc import Collection, Mapping

from hypothesis import given
from hypothesis import strategies as st

from lamina.planning.leaders import even_leaders, lead_elsewhere, led_by
from lamina.planning.moves import Assignments, Replicas
from lamina.topic_partition import TopicPartition
from tests.planning.clusters import leader_counts

BROKERS = (1, 2, 3, 4)
AWAY = 1


@st.composite
def led_by_one(draw: st.DrawFn) -> tuple[Assignments, Mapping[TopicPartition, Collection[int]]]:
    """Partitions that broker 1 leads, each with some others of which one at least is in sync; and a few of others."""
    before: dict[TopicPartition, Replicas] = {}
    in_sync: dict[TopicPartition, Collection[int]] = {}
    for index in range(draw(st.integers(1, 12))):
        others = draw(st.permutations([2, 3, 4]))[: draw(st.integers(1, 3))]
        before["t", index] = (AWAY, *others)
        in_sync["t", index] = {AWAY, *draw(st.sets(st.sampled_from(others), min_size=1))}
    for index in range(draw(st.integers(0, 4))):
        before["other", index] = tuple(draw(st.permutations(BROKERS)))
    return before, in_sync


@given(led_by_one())
def test_others_that_are_in_sync_lead_what_a_broker_led(
    drained: tuple[Assignments, Mapping[TopicPartition, Collection[int]]],
) -> None:
    before, in_sync = drained
    plan = lead_elsewhere(before, in_sync, {AWAY}, BROKERS)
    for key, replicas in plan.items():
        assert sorted(replicas) == sorted(before[key]), "nothing is copied"
        if key in in_sync:
            assert replicas[0] in in_sync[key]
            assert replicas[-1] == AWAY, "it is the last to lead again"
        else:
            assert replicas == before[key]


def test_what_a_broker_led_is_shared_among_the_others() -> None:
    before = {("t", index): (1, 2, 3, 4) for index in range(9)}
    plan = lead_elsewhere(before, dict.fromkeys(before, BROKERS), {AWAY}, BROKERS)
    assert leader_counts(plan, BROKERS) == [0, 3, 3, 3]


def test_leaders_that_are_even_stay() -> None:
    before = {("t", 0): (1, 2), ("t", 1): (2, 1), ("t", 2): (1, 2)}
    assert even_leaders(before, before, (1, 2)) == before


def test_other_partitions_keep_their_leaders_where_only_some_may_change() -> None:
    before = {("t", 0): (1, 2), ("t", 1): (1, 2), ("u", 0): (1, 2), ("u", 1): (1, 2)}
    plan = even_leaders(before, before, (1, 2), [("t", 0)])
    assert plan == before | {("t", 0): (2, 1)}


def test_who_leads_and_who_led_change_places() -> None:
    assert led_by((1, 2, 3), 3) == (3, 2, 1)
