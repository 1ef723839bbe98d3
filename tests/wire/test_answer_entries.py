from typing import Any

import pytest

from lamina.wire.answer_entries import has_entries, names_entries
from lamina.wire.building import build_request, response_shape

LIST_OFFSETS, FIND_COORDINATOR, HEARTBEAT, METADATA, DESCRIBE_PRODUCERS = 2, 10, 12, 3, 61


def offsets_of(*counts: int) -> Any:
    """A topic for each count, with so many partitions."""
    shape = response_shape(LIST_OFFSETS, 7)
    topic, partition = shape.of("topics"), shape.of("topics").of("partitions")
    one = partition(partition_index=0, error_code=0, timestamp=-1, offset=-1, leader_epoch=-1)
    return shape(topics=tuple(topic(name="t", partitions=(one,) * count) for count in counts))


@pytest.mark.parametrize("counts", [(9,), (4, 4), (1,) * 5, (0,) * 10])
def test_entries_are_counted_with_those_inside_them(counts: tuple[int, ...]) -> None:
    assert has_entries(offsets_of(*counts), 10)


@pytest.mark.parametrize("counts", [(), (8,), (4, 3), (0,) * 9])
def test_fewer_entries_are_not_enough(counts: tuple[int, ...]) -> None:
    assert not has_entries(offsets_of(*counts), 10)


def test_an_answer_without_arrays_has_no_entries() -> None:
    assert not has_entries(response_shape(HEARTBEAT, 4)(error_code=0), 1)


def test_numbers_do_not_count() -> None:
    shape = response_shape(METADATA, 9)
    partition = shape.of("topics").of("partitions")(
        error_code=0,
        partition_index=0,
        leader_id=1,
        leader_epoch=0,
        replica_nodes=tuple(range(100)),
        isr_nodes=(),
        offline_replicas=(),
    )
    topic = shape.of("topics")(
        error_code=0, name="t", is_internal=False, partitions=(partition,), topic_authorized_operations=0
    )
    answer = shape(brokers=(), cluster_id=None, controller_id=1, topics=(topic,), cluster_authorized_operations=0)
    assert has_entries(answer, 2)
    assert not has_entries(answer, 3)


def test_numbers_count_that_a_request_names() -> None:
    request = build_request(DESCRIBE_PRODUCERS, 0, {"topics": [{"name": "t", "partition_indexes": range(9)}]})
    assert names_entries(request, 10)
    assert not names_entries(request, 11)
    assert not has_entries(request, 2)
