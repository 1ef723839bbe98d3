"""More replicas of partitions, and fewer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.planning.rebalance import rebalance
from lamina.planning.replicas import NotEnoughBrokers
from lamina.planning.replication_factor import with_replication_factor
from tests.planning.clusters import Cluster, clusters, replica_counts, unevenness

THREE = {1: None, 2: None, 3: None}


@given(clusters(leaving=1), st.integers(1, 3))
def test_every_partition_has_so_many_replicas_and_they_are_even(cluster: Cluster, factor: int) -> None:
    if factor > len(cluster.racks):
        with pytest.raises(NotEnoughBrokers):
            with_replication_factor(cluster.before, cluster.racks, factor)
        return
    plan = rebalance(with_replication_factor(cluster.before, cluster.racks, factor), cluster.racks, cluster.sizes)
    assert {len(set(replicas)) for replicas in plan.values()} <= {factor}
    assert {one for replicas in plan.values() for one in replicas} <= cluster.racks.keys()
    assert unevenness(replica_counts(plan, cluster.racks)) <= 1


def test_what_a_single_broker_kept_is_copied_to_the_others_and_led_where_it_was() -> None:
    before = {("t", index): (1,) for index in range(3)}
    assert with_replication_factor(before, THREE, 3) == {("t", index): (1, 2, 3) for index in range(3)}
    assert with_replication_factor(before, THREE, 2) == {("t", 0): (1, 2), ("t", 1): (1, 3), ("t", 2): (1, 2)}


def test_replicas_come_to_other_racks_and_go_from_shared_ones() -> None:
    racks = {1: "a", 2: "a", 3: "b"}
    assert with_replication_factor({("t", 0): (1,)}, racks, 2) == {("t", 0): (1, 3)}
    assert with_replication_factor({("t", 0): (1, 2, 3)}, racks, 2) == {("t", 0): (1, 3)}


def test_a_broker_that_is_not_named_goes_first() -> None:
    assert with_replication_factor({("t", 0): (4, 1, 2)}, THREE, 2) == {("t", 0): (1, 2)}
