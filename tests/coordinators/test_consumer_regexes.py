"""Subscriptions by regular expression: when they are resolved, and what follows."""

import pytest

from lamina.coordinators.group_context import GroupSettings
from lamina.coordinators.group_requests import ConsumerHeartbeatResponse
from lamina.coordinators.records.group_records import GroupRecord, RegexKey, RegexValue
from lamina.errors import InvalidRegularExpression
from tests.coordinators.consumer_world import GROUP, World, durable


def with_regex(world: World, member_id: str, regex: str) -> ConsumerHeartbeatResponse:
    return world.beat(member_id, 0, regex=regex, owned={}, rebalance_timeout_ms=60_000)[0]


def test_an_expression_is_resolved_apart_and_counts_from_the_next_heartbeat() -> None:
    world = World(a=1, ab=1, b=1)
    assert with_regex(world, "m", "a.*") == ConsumerHeartbeatResponse("m", 1, 5_000, {})
    assert world.asked == [("a.*",)]
    started_at_ms = world.now.wall_ms
    world.pass_time(100)
    records = world.resolve()
    assert records[0] == GroupRecord(RegexKey(GROUP, "a.*"), RegexValue(("a", "ab"), 3, started_at_ms))
    assert len(records) == 2, "and the group's epoch"
    assert world.group.state.epoch == 2
    assert world.beat("m", 1)[0] == ConsumerHeartbeatResponse("m", 2, 5_000, world.ids(a=(0,), ab=(0,)))
    assert [name for name in ("a", "ab", "b") if world.group.is_subscribed_to(name)] == ["a", "ab"]


def test_an_expression_that_cannot_be_read_is_refused() -> None:
    world = World(a=1)
    with pytest.raises(InvalidRegularExpression):
        with_regex(world, "m", "(")
    assert not world.log


def test_names_and_an_expression_add_up() -> None:
    world = World(a=1, b=1, c=1)
    world.join("m", "a", regex="b")
    world.resolve()
    assert world.beat("m", 1)[0].assignment == world.ids(a=(0,), b=(0,))


def test_a_member_with_an_expression_that_is_resolved_already_gets_its_share_at_once() -> None:
    world = World(a=2)
    with_regex(world, "m", "a")
    world.resolve()
    world.settle()
    assert with_regex(world, "n", "a").member_epoch == 3
    assert not world.asked
    world.settle()
    assert world.assigned("n") == world.ids(a=(1,))


def test_only_one_resolution_is_under_way_and_not_more_than_one_in_ten_seconds() -> None:
    world = World(a=1, b=1)
    with_regex(world, "m", "a")
    with_regex(world, "n", "b")
    assert world.asked == [("a",)]
    world.resolve()
    world.beat("n", 1)
    world.pass_time(10_000)
    world.beat("n", world.epoch("n"))
    assert world.asked == []
    world.pass_time(1)
    world.beat("m", world.epoch("m"), owned={})
    assert world.asked == [("a", "b")], "all of the group's together"
    world.resolve()
    world.settle()
    assert world.assigned("n") == world.ids(b=(0,))


def test_new_topics_have_expressions_resolved_again() -> None:
    world = World(a=1)
    with_regex(world, "m", "a.*")
    world.resolve()
    world.settle()
    world.make_topic("ab", 1)
    world.pass_time(10_001)
    world.beat("m", 2)
    assert world.asked == [("a.*",)]
    world.resolve()
    assert world.beat("m", 2)[0] == ConsumerHeartbeatResponse("m", 3, 5_000, world.ids(a=(0,), ab=(0,)))


def test_a_resolution_that_finds_the_same_does_not_rebalance() -> None:
    world = World(a=1)
    with_regex(world, "m", "a.*")
    world.resolve()
    world.settle()
    world.make_topic("z", 1)
    world.pass_time(10_001)
    world.beat("m", 2)
    assert len(world.resolve()) == 1
    assert world.group.state.name == "Stable"


def test_expressions_are_resolved_again_when_it_was_long_ago() -> None:
    world = World(GroupSettings(consumer_regex_refresh_interval_ms=30_000), a=1)
    with_regex(world, "m", "a.*")
    world.resolve()
    world.pass_time(30_000)
    world.beat("m", 1)
    assert not world.asked
    world.pass_time(1)
    world.beat("m", 2)
    assert world.asked


def test_a_resolution_that_failed_is_asked_for_again_after_a_while() -> None:
    world = World(a=1)
    with_regex(world, "m", "a")
    world.asked.clear()
    assert world.carry_out(world.group.resolved({}, world.now, world.context)) == []
    world.beat("m", 1)
    assert world.asked == []
    world.pass_time(10_001)
    world.beat("m", 1)
    assert world.asked == [("a",)]


def test_expressions_are_resolved_once_after_loading() -> None:
    world = World(a=1)
    with_regex(world, "m", "a.*")
    world.resolve()
    world.settle()
    world.pass_time(20_000)
    before = durable(world.group)
    world.load()
    assert durable(world.group) == before
    world.beat("m", 2)
    assert world.asked == [("a.*",)]
    assert len(world.resolve()) == 1


def test_an_expression_that_its_last_member_gives_up_is_forgotten() -> None:
    world = World(a=1, b=1)
    with_regex(world, "m", "a")
    world.resolve()
    world.settle()
    _, records = world.beat("m", 2, topics=("b",), regex="", owned=world.ids(a=(0,)))
    assert GroupRecord(RegexKey(GROUP, "a"), None) in records
    world.settle()
    assert world.assigned("m") == world.ids(b=(0,))


def test_giving_up_an_expression_that_others_keep_rebalances_too() -> None:
    world = World(a=2)
    with_regex(world, "m", "a")
    with_regex(world, "n", "a")
    world.resolve()
    world.settle()
    world.beat("m", world.epoch("m"), regex="", owned=world.assigned("m"))
    world.settle()
    assert (world.assigned("m"), world.assigned("n")) == ({}, world.ids(a=(0, 1)))
    assert set(world.group.state.regexes) == {"a"}


def test_an_expression_goes_with_the_last_member_that_leaves() -> None:
    world = World(a=1)
    with_regex(world, "m", "a")
    world.resolve()
    _, records = world.beat("m", -1)
    assert records[3] == GroupRecord(RegexKey(GROUP, "a"), None)
    assert world.group.state.metadata_hash == 0


def test_a_result_for_an_expression_that_nobody_wants_any_more_is_dropped() -> None:
    world = World(a=1)
    with_regex(world, "m", "a")
    world.beat("m", 1, regex="")
    assert world.resolve() == []
