"""Whole plans: what they keep, what they even out, and what they cost."""

from functools import partial

import pytest
from hypothesis import given

from lamina.planning.moves import Assignments, copied_bytes, moves_between
from lamina.planning.rebalance import Plan, decommission, rebalance, rebalance_leaders
from lamina.planning.replicas import NotEnoughBrokers
from tests.planning.clusters import Cluster, clusters, leader_counts, replica_counts, unevenness


def assert_is_sound(cluster: Cluster, plan: Plan) -> None:
    assert plan.keys() == cluster.before.keys()
    for key, replicas in plan.items():
        assert len(replicas) == len(cluster.before[key]), "the replication factor is kept"
        assert len(set(replicas)) == len(replicas), "no broker has a replica twice"
        assert set(replicas) <= cluster.racks.keys()


def copies(before: Assignments, after: Assignments) -> int:
    return sum(len(move.added) for move in moves_between(before, after))


@given(clusters(leaving=1))
def test_replicas_are_even_within_one(cluster: Cluster) -> None:
    plan = rebalance(cluster.before, cluster.racks, cluster.sizes)
    assert_is_sound(cluster, plan)
    assert unevenness(replica_counts(plan, cluster.racks)) <= 1


@given(clusters(same_factor=True))
def test_with_one_replication_factor_leaders_are_even_within_one(cluster: Cluster) -> None:
    plan = rebalance(cluster.before, cluster.racks, cluster.sizes)
    assert unevenness(leader_counts(plan, cluster.racks)) <= 1


@given(clusters())
def test_no_replica_moves_that_need_not(cluster: Cluster) -> None:
    """Every broker that has too many gives, and every one that has too few gets, and nobody else."""
    plan = rebalance(cluster.before, cluster.racks, cluster.sizes)
    counts = replica_counts(cluster.before, cluster.racks)
    fewest, more = divmod(sum(counts), len(counts))
    most = fewest + (more > 0)
    too_many = sum(max(count - most, 0) for count in counts)
    too_few = sum(max(fewest - count, 0) for count in counts)
    assert copies(cluster.before, plan) == max(too_many, too_few)


@given(clusters(racks=3, leaving=1))
def test_replicas_are_in_as_many_racks_as_there_can_be_and_even_all_the_same(cluster: Cluster) -> None:
    plan = rebalance(cluster.before, cluster.racks, cluster.sizes)
    assert_is_sound(cluster, plan)
    for replicas in plan.values():
        assert len({cluster.racks[one] for one in replicas}) == len(replicas)
    assert unevenness(replica_counts(plan, cluster.racks)) <= 1


@given(clusters(racks=2))
def test_what_is_even_already_stays(cluster: Cluster) -> None:
    once = rebalance(cluster.before, cluster.racks, cluster.sizes)
    assert rebalance(once, cluster.racks, cluster.sizes) == once


def test_a_rack_of_one_broker_keeps_a_replica_of_everything() -> None:
    """Racks apart count for more than even brokers."""
    racks = {1: "a", 2: "b", 3: "b"}
    before = {("t", index): (2, 3) for index in range(4)}
    plan = rebalance(before, racks, {})
    assert all(1 in replicas for replicas in plan.values())
    assert replica_counts(plan, racks) == [4, 2, 2]


def test_without_a_rack_of_every_broker_racks_do_not_count() -> None:
    racks = {1: "a", 2: "b", 3: None}
    assert replica_counts(rebalance({("t", index): (1, 2) for index in range(3)}, racks, {}), racks) == [2, 2, 2]


def test_small_partitions_move_rather_than_large_ones() -> None:
    before = {("t", index): (1,) for index in range(4)}
    sizes = {("t", 0): 500, ("t", 1): 1, ("t", 2): 700, ("t", 3): 2}
    plan = rebalance(before, {1: None, 2: None}, sizes)
    moves = moves_between(before, plan)
    assert [move.key for move in moves] == [("t", 1), ("t", 3)]
    assert copied_bytes(moves, sizes) == 3


def test_a_new_broker_gets_replicas_of_every_topic() -> None:
    before = {(topic, index): (1 + index % 2,) for topic in ("a", "b", "c") for index in range(4)}
    plan = rebalance(before, {1: None, 2: None, 3: None}, {})
    assert {topic for (topic, _), replicas in plan.items() if replicas == (3,)} == {"a", "b", "c"}


@given(clusters(same_factor=True))
def test_leaders_can_be_evened_out_without_copying(cluster: Cluster) -> None:
    replicas = rebalance(cluster.before, cluster.racks, cluster.sizes)
    crooked = {key: (min(one), *sorted(set(one) - {min(one)})) for key, one in replicas.items()}
    plan = rebalance_leaders(crooked, cluster.racks)
    assert copies(crooked, plan) == 0
    assert unevenness(leader_counts(plan, cluster.racks)) <= 1


@given(clusters(racks=3, leaving=2))
def test_brokers_are_emptied_and_nothing_else_moves(cluster: Cluster) -> None:
    leaving = {one for replicas in cluster.before.values() for one in replicas} - cluster.racks.keys()
    plan = decommission(cluster.before, cluster.racks, leaving)
    assert_is_sound(cluster, plan)
    for key, before in cluster.before.items():
        going = leaving.intersection(before)
        assert set(plan[key]) >= set(before) - going
        if not going:
            assert plan[key] == before
        staying = {cluster.racks[one] for one in before if one not in going}
        assert len({cluster.racks[one] for one in plan[key]}) == len(staying) + len(going)


def test_a_broker_that_is_away_for_a_while_keeps_what_it_has() -> None:
    before = {("t", 0): (3, 9), ("t", 1): (9, 1)}
    assert decommission(before, {1: None, 2: None}, {3}) == {("t", 0): (2, 9), ("t", 1): (9, 1)}


def test_more_replicas_than_brokers_cannot_be_kept() -> None:
    before = {("t", 0): (1, 2, 3), ("t", 1): (1, 2), ("a", 0): (3, 1, 2)}
    for plan in (partial(decommission, leaving={3}), partial(rebalance, sizes={})):
        with pytest.raises(NotEnoughBrokers) as refused:
            plan(before, {1: None, 2: None})
        assert refused.value.keys == [("a", 0), ("t", 0)]
        assert refused.value.broker_count == 2
