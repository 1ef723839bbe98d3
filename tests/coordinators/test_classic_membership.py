"""Staying in a classic group and leaving it; looking at it and giving it up."""

import pytest

from lamina.coordinators.classic_state import GroupDecision
from lamina.coordinators.group_requests import ClassicDescription, Client, DescribedMember
from lamina.errors import (
    FencedInstanceId,
    IllegalGeneration,
    KafkaError,
    NonEmptyGroup,
    RebalanceInProgress,
    UnknownMemberId,
)
from tests.coordinators.classic_world import GROUP, RANGE, REBALANCE_MS, SESSION_MS, World, subscribed


def kinds(errors: list[KafkaError | None]) -> list[type[KafkaError] | None]:
    return [None if error is None else type(error) for error in errors]


# Heartbeats


def test_a_heartbeat_keeps_a_member_in() -> None:
    world = World()
    world.form("a", "b")
    for _ in range(5):
        world.pass_time(SESSION_MS - 1)
        assert world.heartbeat("a") is None
        assert world.heartbeat("b") is None
    assert world.ids == ["a", "b"]


def test_a_member_that_is_not_heard_of_is_lost_and_the_others_join_again() -> None:
    world = World()
    world.form("a", "b")
    world.pass_time(1)
    world.heartbeat("b")
    world.pass_time(SESSION_MS - 1)
    assert world.ids == ["b"]
    assert isinstance(world.heartbeat("b"), RebalanceInProgress)
    assert isinstance(world.heartbeat("a"), UnknownMemberId)
    assert world.joined(world.ask_to_join("b")).generation == 2


def test_a_group_whose_last_member_is_lost_is_empty_and_stored_so() -> None:
    world = World()
    world.form("a")
    world.pass_time(SESSION_MS)
    assert world.state == "Empty"
    stored = world.group.stored
    assert stored is not None
    assert stored == ("consumer", 2, None, None, world.now.wall_ms, ())


def test_a_heartbeat_counts_while_the_group_rebalances() -> None:
    world = World()
    world.form("a", "b")
    world.ask_to_join("a")
    for _ in range(4):
        world.pass_time(SESSION_MS - 1)
        assert isinstance(world.heartbeat("b"), RebalanceInProgress)
    assert "b" in world.ids


def test_a_heartbeat_counts_while_the_generation_is_assigned() -> None:
    world = World()
    world.join_all("a", "b")
    for _ in range(4):
        world.pass_time(SESSION_MS - 1)
        assert world.heartbeat("a") is None
        assert world.heartbeat("b") is None
    assert world.state == "CompletingRebalance"
    assert world.ids == ["a", "b"]


def test_a_heartbeat_of_another_generation_is_refused_and_does_not_count() -> None:
    world = World()
    world.form("a")
    world.pass_time(SESSION_MS - 1)
    assert isinstance(world.heartbeat("a", generation=0), IllegalGeneration)
    assert isinstance(world.heartbeat("nobody", generation=0), UnknownMemberId)
    world.pass_time(1)
    assert world.ids == []
    assert isinstance(world.heartbeat("a"), UnknownMemberId)


def test_an_id_that_was_only_given_out_has_no_heartbeats() -> None:
    world = World()
    world.form("a")
    world.ask_to_join(gets="b", two_step=True)
    assert isinstance(world.heartbeat("b"), UnknownMemberId)


# Leaving


def test_members_that_leave_make_the_others_join_again() -> None:
    world = World()
    world.form("a", "b", "c")
    assert world.leave(("a", None), ("b", None)) == [None, None]
    assert world.ids == ["c"]
    assert world.state == "PreparingRebalance"
    assert world.joined(world.ask_to_join("c")).leader == "c"


def test_each_leaving_member_has_an_answer_of_its_own() -> None:
    world = World()
    world.form("a", "b")
    errors = world.leave(("a", None), ("nobody", None), ("a", None), ("", None), ("b", "no instance"))
    assert kinds(errors) == [None, UnknownMemberId, UnknownMemberId, UnknownMemberId, UnknownMemberId]
    assert world.ids == ["b"]


def test_nothing_changes_when_nobody_who_leaves_is_known() -> None:
    world = World()
    world.form("a")
    assert kinds(world.leave(("nobody", None))) == [UnknownMemberId]
    assert world.state == "Stable"


def test_a_member_that_leaves_while_it_waits_is_told_that_it_is_gone() -> None:
    world = World()
    world.form("a", "b")
    joining = world.ask_to_join("a")
    world.leave(("a", None))
    assert world.error(joining) is UnknownMemberId
    assert world.joined(world.ask_to_join("b")).generation == 2


def test_a_member_that_leaves_while_it_waits_for_its_part_is_told_that_it_is_gone() -> None:
    world = World()
    world.join_all("a", "b")
    syncing = world.ask_to_sync("b")
    world.leave(("b", None))
    assert world.error(syncing) is UnknownMemberId
    assert world.joined(world.ask_to_join("a")).generation == 2


def test_the_last_one_that_a_rebalance_waits_for_may_leave() -> None:
    world = World()
    world.form("a", "b")
    joining = world.ask_to_join("a")
    world.leave(("b", None))
    assert world.joined(joining).generation == 2


def test_a_group_that_all_have_left_is_empty() -> None:
    world = World()
    world.form("a", "b")
    world.leave(("a", None), ("b", None))
    assert (world.state, world.group.generation) == ("Empty", 2)
    assert world.timers == {}


def test_an_id_that_was_given_out_is_given_back_without_a_rebalance() -> None:
    world = World()
    world.ask_to_join(gets="x", two_step=True)
    assert world.leave(("x", None)) == [None]
    assert world.state == "Empty"
    assert world.timers == {}
    world.form("a")
    world.ask_to_join(gets="y", two_step=True)
    assert world.leave(("y", "whatever")) == [None]
    assert world.state == "Stable"


def test_a_static_member_leaves_by_its_instance_alone() -> None:
    world = World()
    world.form_static("i", "j")
    assert kinds(world.leave(("", "i"), ("", "nothing"))) == [None, UnknownMemberId]
    assert world.ids == ["j-1"]


def test_a_static_member_cannot_be_made_to_leave_by_one_that_was_replaced() -> None:
    world = World()
    world.form_static("i", "j")
    world.ask_to_join(gets="i-2", instance="i")
    assert kinds(world.leave(("i-1", "i"))) == [FencedInstanceId]
    assert world.ids == ["i-2", "j-1"]
    assert world.state == "Stable"
    assert kinds(world.leave(("i-2", "i"))) == [None]


# Looking


def test_a_stable_group_is_described_in_full() -> None:
    world = World()
    world.form("a", client=Client("me", "/10.0.0.1"))
    assert world.group.describe() == ClassicDescription(
        GROUP,
        "Stable",
        "consumer",
        "range",
        (DescribedMember("a", None, "me", "/10.0.0.1", subscribed("t"), b"a in 1"),),
        1,
        "a",
    )


def test_a_group_that_rebalances_is_described_without_its_protocol() -> None:
    world = World()
    world.form_static("i")
    world.ask_to_join(gets="b")
    description = world.group.describe()
    assert (description.state, description.protocol_type, description.protocol) == (
        "PreparingRebalance",
        "consumer",
        "",
    )
    old, new = description.members
    assert old == DescribedMember("i-1", "i", "client", "/127.0.0.1", b"", b"i-1 in 1")
    assert new.assignment == b""


def test_an_empty_group_is_described_as_such() -> None:
    world = World()
    world.form("a")
    world.leave(("a", None))
    assert world.group.describe() == ClassicDescription(GROUP, "Empty", "consumer", "", (), 2, None)


# The end of a group


def test_only_an_empty_group_is_deleted() -> None:
    world = World()
    world.ask_to_join(gets="a")
    for advance in (world.join_all, world.assign, lambda: world.leave(("a", None))):
        with pytest.raises(NonEmptyGroup):
            world.group.check_delete()
        advance()
    assert world.state == "Empty"
    world.group.check_delete()
    assert [record.value for record in world.group.tombstones()] == [None]


def test_a_group_that_was_never_stored_leaves_nothing_to_delete() -> None:
    world = World()
    world.ask_to_join(gets="a", two_step=True)
    assert world.group.tombstones() == []


def test_a_group_is_abandoned_when_it_is_empty_and_nobody_is_about_to_join() -> None:
    world = World()
    world.ask_to_join(gets="a", two_step=True)
    assert not world.group.is_abandoned
    world.ask_to_join("a")
    assert not world.group.is_abandoned
    world.leave(("a", None))
    world.pass_time(REBALANCE_MS)
    assert world.group.is_abandoned


def test_whoever_waits_is_told_to_join_again_when_the_group_changes_its_protocol() -> None:
    world = World()
    world.form("a", "b")
    joining = world.ask_to_join("a")
    world.ask_to_join(gets="c", two_step=True)
    snapshot = world.group.snapshot()
    assert (snapshot.group_id, snapshot.protocol_type, snapshot.protocol, snapshot.generation) == (
        GROUP,
        "consumer",
        "range",
        1,
    )
    assert [(one.member_id, one.protocols, one.assignment) for one in snapshot.members] == [
        ("a", RANGE, b"a in 1"),
        ("b", RANGE, b"b in 1"),
    ]
    world.carry_out(GroupDecision(effects=world.group.give_up()))
    assert world.error(joining) is RebalanceInProgress
    assert world.timers == {}


def test_stale_timers_are_harmless() -> None:
    world = World()
    world.form("a", "b")
    for name in ("join",), ("sync",), ("session", "gone"), ("pending", "gone"):
        world.carry_out(world.group.on_timer((GROUP, *name), world.now))
    assert world.state == "Stable"
    assert world.ids == ["a", "b"]
