"""Placement: Kafka's vectors, and what holds for any brokers, counts and random starts."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.controller.placement import place, place_more
from lamina.errors import ErrorCode, KafkaError
from lamina.image.changes import create_topic, register_broker
from lamina.image.image import Broker, Image
from tests.image.steps import CLUSTER_ID, broker, topic_id

RACKS = {0: "r1", 1: "r3", 2: "r3", 3: "r2", 4: "r2", 5: "r1"}


def brokers(racks: dict[int, str | None]) -> list[Broker]:
    return [broker(broker_id, rack=rack) for broker_id, rack in racks.items()]


def plain(*ids: int) -> list[Broker]:
    return brokers(dict.fromkeys(ids))


def test_without_racks_the_vectors_of_r62() -> None:
    placed = place(plain(3, 1, 0, 4, 2), 10, 3, start=0, shift=0)
    assert [placed[index] for index in (0, 1, 4, 5, 9)] == [(0, 1, 2), (1, 2, 3), (4, 0, 1), (0, 2, 3), (4, 1, 2)]


def test_with_racks_the_vectors_of_r62() -> None:
    placed = place(brokers({**RACKS}), 7, 3, start=0, shift=0)
    assert [one[0] for one in placed[:6]] == [0, 3, 1, 5, 4, 2]
    assert [placed[index] for index in (0, 1, 5, 6)] == [(0, 3, 1), (3, 1, 5), (2, 0, 3), (0, 4, 2)]


def image_of(*ids: int, assignments: list[tuple[int, ...]]) -> Image:
    image = Image(CLUSTER_ID)
    for broker_id in ids:
        image = register_broker(image, broker(broker_id))
    return create_topic(image, "t", topic_id(1), assignments)


def test_added_partitions_go_on_from_the_first_one_r63() -> None:
    image = image_of(3, 1, 2, assignments=[(1, 2), (2, 3)])
    assert place_more(image, image.topics["t"], 5) == ((3, 1), (1, 3), (2, 1))


def test_the_first_replica_of_partition_0_may_be_on_a_broker_that_is_gone_r63() -> None:
    image = image_of(1, 3, assignments=[(2, 1)])
    assert place_more(image, image.topics["t"], 2) == ((1, 3),), "3 is the first id from 2 on, and one further is 1"
    image = image_of(1, 2, assignments=[(9,)])
    assert place_more(image, image.topics["t"], 2) == ((2,),), "none is: it begins at the first"


@pytest.mark.parametrize(
    ("partition_count", "replication_factor", "code"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (-1, 1, ErrorCode.INVALID_PARTITIONS),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, -1, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 3, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_impossible_counts_get_kafkas_errors_r60(partition_count: int, replication_factor: int, code: int) -> None:
    with pytest.raises(KafkaError) as caught:
        place(plain(1, 2), partition_count, replication_factor, 0, 0)
    assert caught.value.code == code


def test_a_topic_does_not_grow_where_its_replicas_have_no_room() -> None:
    image = image_of(1, assignments=[(1, 2)])
    with pytest.raises(KafkaError) as caught:
        place_more(image, image.topics["t"], 2)
    assert caught.value.code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_brokers_with_and_without_a_rack_are_refused_together_r61() -> None:
    with pytest.raises(KafkaError, match="broker 2 has no rack"):
        place(brokers({1: "a", 2: None}), 1, 1, 0, 0)


@given(st.data(), st.integers(1, 9), st.integers(0, 4), st.integers(1, 40), st.integers(0, 20))
def test_leaders_are_even_no_replica_comes_twice_and_racks_are_apart(
    data: st.DataObject, broker_count: int, rack_count: int, partition_count: int, first_partition: int
) -> None:
    names = [f"rack{number}" for number in range(rack_count)]
    ids = data.draw(st.lists(st.integers(0, 99), min_size=broker_count, max_size=broker_count, unique=True))
    racks = {one: data.draw(st.sampled_from(names)) if names else None for one in ids}
    factor = data.draw(st.integers(1, broker_count))
    start, shift = data.draw(st.tuples(st.integers(0, broker_count - 1), st.integers(0, broker_count - 1)))
    placed = place(brokers(racks), partition_count, factor, start, shift, first_partition)

    assert len(placed) == partition_count
    leaders = Counter(dict.fromkeys(ids, 0)) + Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders[one] for one in ids) <= 1
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert set(replicas) <= set(ids)
        if names:
            assert len({racks[one] for one in replicas}) == min(factor, len(set(racks.values())))


@given(st.data(), st.integers(1, 8), st.integers(1, 5), st.integers(0, 3))
def test_after_whole_rounds_every_broker_has_as_many_replicas(
    data: st.DataObject, broker_count: int, rounds: int, first_round: int
) -> None:
    """Within a round the followers of neighbours overlap, as in Kafka; racks of unequal size weigh on small ones."""
    factor = data.draw(st.integers(1, broker_count))
    start, shift = data.draw(st.tuples(st.integers(0, broker_count - 1), st.integers(0, broker_count - 1)))
    placed = place(plain(*range(broker_count)), rounds * broker_count, factor, start, shift, first_round * broker_count)
    replicas = Counter(one for replicas in placed for one in replicas)
    assert set(replicas.values()) == {rounds * factor}


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(0, 11))
def test_racks_of_equal_size_are_even_too(
    rack_count: int, brokers_per_rack: int, factor: int, rounds: int, start: int
) -> None:
    count = rack_count * brokers_per_rack
    racks: dict[int, str | None] = {one: f"rack{one % rack_count}" for one in range(count)}
    factor = min(factor, count)
    placed = place(brokers(racks), rounds * count, factor, start % count, 0)
    replicas = Counter(one for replicas in placed for one in replicas)
    assert set(replicas.values()) == {rounds * factor}
