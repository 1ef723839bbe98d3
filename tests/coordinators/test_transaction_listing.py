"""DescribeTransactions and ListTransactions."""

import pytest

from lamina.coordinators.decision import Producer
from lamina.coordinators.transaction_requests import ListRequest, TransactionDescription, TransactionListing
from lamina.errors import InvalidRegularExpression, InvalidRequest, TransactionalIdNotFound
from tests.coordinators.transaction_world import FIRST_PRODUCER_ID, TIMEOUT_MS, World


def made() -> World:
    """Three ids: one that only began, one that has written for 100 ms, one that has committed 50 ms ago."""
    world = World()
    world.init(transactional_id="orders-1")
    for name in ("orders-2", "payments"):
        producer = world.init(transactional_id=name)
        world.add(producer, ("b", 2), ("a", 1), ("b", 0), transactional_id=name)
        if name == "payments":
            world.end(producer, is_commit=True, transactional_id=name)
            world.write_markers()
        world.wall_ms += 50
    return world


def ids(world: World, request: ListRequest) -> tuple[str, ...]:
    return tuple(one.transactional_id for one in world.listed(request).listings)


def test_a_transaction_is_described_with_its_partitions_in_order() -> None:
    world = made()
    assert world.shard.describe("orders-2") == TransactionDescription(
        "orders-2",
        "Ongoing",
        TIMEOUT_MS,
        world.wall_ms - 100,
        Producer(FIRST_PRODUCER_ID + 1, 0),
        (("a", 1), ("b", 0), ("b", 2)),
    )


def test_an_id_that_is_not_there_is_not_found() -> None:
    with pytest.raises(TransactionalIdNotFound):
        made().shard.describe("nobody")
    with pytest.raises(InvalidRequest):
        made().shard.describe("")


def test_without_filters_all_are_listed() -> None:
    assert made().listed(ListRequest()).listings == (
        TransactionListing("orders-1", FIRST_PRODUCER_ID, "Empty"),
        TransactionListing("orders-2", FIRST_PRODUCER_ID + 1, "Ongoing"),
        TransactionListing("payments", FIRST_PRODUCER_ID + 2, "CompleteCommit"),
    )


def test_states_filter_and_unknown_ones_are_named() -> None:
    world = made()
    assert ids(world, ListRequest(states=frozenset({"Ongoing", "Empty"}))) == ("orders-1", "orders-2")
    response = world.listed(ListRequest(states=frozenset({"Ongoing", "ongoing", "Open"})))
    assert response.unknown_states == ("Open", "ongoing")
    assert [one.transactional_id for one in response.listings] == ["orders-2"]
    assert ids(world, ListRequest(states=frozenset({"Open"}))) == ()


def test_producer_ids_filter() -> None:
    assert ids(made(), ListRequest(producer_ids=frozenset({FIRST_PRODUCER_ID + 2, 5}))) == ("payments",)


def test_durations_filter_what_is_older() -> None:
    world, ongoing = made(), frozenset({"Ongoing"})
    assert ids(world, ListRequest(ongoing, duration_ms=99)) == ("orders-2",)
    assert ids(world, ListRequest(ongoing, duration_ms=100)) == ()
    assert ids(world, ListRequest(ongoing, duration_ms=-1)) == ("orders-2",)


def test_patterns_filter_by_the_whole_id() -> None:
    world = made()
    assert ids(world, ListRequest(id_pattern="orders-.*")) == ("orders-1", "orders-2")
    assert ids(world, ListRequest(id_pattern="orders")) == ()
    assert ids(world, ListRequest(id_pattern="")) == ("orders-1", "orders-2", "payments")


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidRegularExpression):
        made().listed(ListRequest(id_pattern="("))


def test_every_filter_must_let_a_transaction_through() -> None:
    request = ListRequest(frozenset({"Ongoing"}), frozenset({FIRST_PRODUCER_ID + 2}))
    assert ids(made(), request) == ()
