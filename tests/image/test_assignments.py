from dataclasses import replace

import pytest

from lamina.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    PolicyViolation,
    ReassignmentInProgress,
)
from lamina.image.assignments import (
    check_assignments,
    check_more_partitions,
    check_partition_count,
    check_replication_factor,
    check_total_partitions,
)
from lamina.image.changes import create_topic, register_broker
from lamina.image.image import Image
from lamina.image.topic import Topic
from tests.image.steps import CLUSTER_ID, broker, topic_id

IMAGE = create_topic(
    register_broker(register_broker(Image(CLUSTER_ID), broker(0)), broker(1)), "orders", topic_id(1), [(0,), (1,)]
)
ORDERS = IMAGE.topics["orders"]


@pytest.mark.parametrize("count", [0, -1, -2])
def test_a_topic_has_at_least_one_partition(count: int) -> None:
    check_partition_count(1)
    with pytest.raises(InvalidPartitions, match=f"not {count}"):
        check_partition_count(count)


def test_one_request_makes_ten_thousand_partitions_at_most() -> None:
    check_total_partitions([5000, 5000, -1, 0])
    with pytest.raises(PolicyViolation, match="asks for 10001"):
        check_total_partitions([5000, 5000, 1])


@pytest.mark.parametrize("factor", [0, -1, 3, 40_000])
def test_a_partition_has_one_replica_per_broker_at_most(factor: int) -> None:
    check_replication_factor(2, 2)
    with pytest.raises(InvalidReplicationFactor):
        check_replication_factor(2, factor)


def test_an_assignment_comes_back_in_the_order_of_the_partitions() -> None:
    assert check_assignments(IMAGE, {1: [1, 0], 0: [0, 1]}) == ((0, 1), (1, 0))


@pytest.mark.parametrize(
    ("assignments", "problem"),
    [
        ({}, "names no partition"),
        ({0: [0], 2: [0]}, "1 is missing"),
        ({1: [0]}, "0 is missing"),
        ({-1: [0], 0: [0]}, "0 is missing"),
        ({0: []}, "assigned to no broker"),
        ({0: [0, 0]}, "twice"),
        ({0: [7]}, "broker 7, which is not registered"),
        ({0: [0, 1], 1: [0]}, "1 replicas where others have 2"),
    ],
)
def test_an_impossible_assignment_is_refused(assignments: dict[int, list[int]], problem: str) -> None:
    with pytest.raises(InvalidReplicaAssignment, match=problem):
        check_assignments(IMAGE, assignments)


def test_a_topic_grows_with_and_without_an_assignment() -> None:
    assert check_more_partitions(IMAGE, ORDERS, 5, None) is None
    assert check_more_partitions(IMAGE, ORDERS, 4, [[1], [0]]) == ((1,), (0,))


@pytest.mark.parametrize("count", [-1, 0, 1, 2])
def test_a_topic_never_shrinks(count: int) -> None:
    with pytest.raises(InvalidPartitions):
        check_more_partitions(IMAGE, ORDERS, count, None)


def test_a_topic_does_not_grow_while_it_is_reassigned_r63() -> None:
    moving = replace(ORDERS.partitions[1], replicas=(0, 1), adding=(0,), removing=(1,))
    with pytest.raises(ReassignmentInProgress):
        check_more_partitions(IMAGE, replace(ORDERS, partitions=(ORDERS.partitions[0], moving)), 5, None)


def test_a_topic_grows_by_ten_thousand_at_a_time_and_while_its_directories_have_names() -> None:
    check_more_partitions(IMAGE, ORDERS, 10_002, None)
    with pytest.raises(PolicyViolation, match="asks for 10001"):
        check_more_partitions(IMAGE, ORDERS, 10_003, None)
    long = Topic("x" * 249, topic_id(2), ORDERS.partitions[:1] * 99_999)
    check_more_partitions(IMAGE, long, 100_000, None)
    with pytest.raises(InvalidPartitions, match=r"100001 partitions .* could not have directories"):
        check_more_partitions(IMAGE, long, 100_001, None)


@pytest.mark.parametrize("assignments", [[], [[0]], [[0], [0], [0]], [[0], [5]], [[0], [0, 1]]])
def test_an_impossible_assignment_of_new_partitions_is_refused(assignments: list[list[int]]) -> None:
    with pytest.raises(InvalidReplicaAssignment):
        check_more_partitions(IMAGE, ORDERS, 4, assignments)
