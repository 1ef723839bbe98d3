"""Assigning in a classic group: the leader says who has what, and everybody is told its part."""

import pytest

from lamina.coordinators.group_requests import SyncResponse
from lamina.errors import (
    FencedInstanceId,
    IllegalGeneration,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMemberId,
)
from tests.coordinators.classic_world import REBALANCE_MS, SESSION_MS, World

LONG_SESSION_MS = 10 * REBALANCE_MS


def test_followers_wait_for_the_leader_and_everybody_is_told_its_part() -> None:
    world = World()
    world.join_all("a", "b", "c")
    second = world.ask_to_sync("b")
    assert second in world.waiting
    first = world.ask_to_sync("a", {"a": b"1", "b": b"2", "c": b"3"})
    assert world.replies[first] == SyncResponse("consumer", "range", b"1")
    assert world.assigned(second) == b"2"
    assert world.state == "Stable"
    assert world.assigned(world.ask_to_sync("c")) == b"3"


def test_a_member_that_asks_again_is_told_the_same() -> None:
    world = World()
    world.form("a", "b")
    assert world.assigned(world.ask_to_sync("b")) == b"b in 1"
    assert world.assigned(world.ask_to_sync("a", {"a": b"other"})) == b"a in 1"


def test_a_member_to_whom_the_leader_gives_nothing_has_an_empty_part() -> None:
    world = World()
    world.join_all("a", "b")
    world.ask_to_sync("a", {"a": b"all", "stranger": b"what"})
    assert world.assigned(world.ask_to_sync("b")) == b""
    assert world.group.stored is not None
    assert [member.assignment for member in world.group.stored.members] == [b"all", b""]


def test_what_followers_assign_does_not_count() -> None:
    world = World()
    world.join_all("a", "b")
    assert world.ask_to_sync("b", {"b": b"mine"}) in world.waiting
    assert world.log == []


def test_a_generation_is_stored_when_it_is_assigned() -> None:
    world = World()
    world.join_all("a", "b")
    assert world.group.stored is None
    world.assign()
    stored = world.group.stored
    assert stored is not None
    assert stored[:4] == ("consumer", 1, "range", "a")
    assert stored.state_timestamp_ms == world.now.wall_ms
    assert [(one.member_id, one.assignment) for one in stored.members] == [("a", b"a in 1"), ("b", b"b in 1")]


def test_a_member_that_asks_twice_gets_its_part_in_the_newer_request() -> None:
    world = World()
    world.join_all("a", "b")
    older, newer = world.ask_to_sync("b"), world.ask_to_sync("b")
    assert world.error(older) is RebalanceInProgress
    world.ask_to_sync("a", {"b": b"2"})
    assert world.assigned(newer) == b"2"


def test_a_static_member_that_was_replaced_is_fenced() -> None:
    world = World()
    world.form_static("i")
    world.ask_to_join(gets="i-2", instance="i")
    assert world.error(world.ask_to_sync("i-1", instance="i")) is FencedInstanceId
    assert world.error(world.ask_to_sync("i-1")) is UnknownMemberId


def test_the_member_is_checked_before_the_generation_and_that_before_the_protocol() -> None:
    world = World()
    world.join_all("a")
    assert world.error(world.ask_to_sync("nobody", generation=7, protocol="x")) is UnknownMemberId
    assert world.error(world.ask_to_sync("a", instance="nothing", generation=7)) is UnknownMemberId
    assert world.error(world.ask_to_sync("a", generation=7, protocol="x")) is IllegalGeneration


@pytest.mark.parametrize("how", [{"protocol_type": "connect"}, {"protocol": "sticky"}], ids=["type", "protocol"])
def test_a_member_that_means_another_protocol_is_refused(how: dict[str, str]) -> None:
    world = World()
    world.join_all("a")
    assert world.error(world.ask_to_sync("a", **how)) is InconsistentGroupProtocol  # type: ignore[arg-type]
    assert world.ask_to_sync("a", protocol_type="consumer", protocol="range") in world.replies


def test_nobody_is_told_its_part_while_the_group_rebalances() -> None:
    world = World()
    world.form("a", "b")
    world.ask_to_join(gets="c")
    assert world.error(world.ask_to_sync("a", protocol="range")) is RebalanceInProgress
    assert world.error(world.ask_to_sync("a", protocol="sticky")) is InconsistentGroupProtocol


def test_a_protocol_cannot_be_wrong_before_one_was_chosen() -> None:
    world = World()
    world.ask_to_join(gets="a")
    assert world.error(world.ask_to_sync("a", protocol="range")) is RebalanceInProgress


def test_those_who_wait_for_a_leader_that_left_are_told_to_join_again() -> None:
    world = World()
    world.join_all("a", "b")
    waiting = world.ask_to_sync("b")
    world.leave(("a", None))
    assert world.error(waiting) is RebalanceInProgress
    assert world.joined(world.ask_to_join("b")).leader == "b"


def test_a_leader_that_does_not_assign_in_time_is_lost() -> None:
    world = World()
    world.join_all("a", "b", session_ms=LONG_SESSION_MS)
    waiting = world.ask_to_sync("b")
    world.pass_time(REBALANCE_MS - 1)
    assert waiting in world.waiting
    world.pass_time(1)
    assert world.error(waiting) is RebalanceInProgress
    assert world.ids == ["b"]
    assert world.state == "PreparingRebalance"


def test_members_that_never_ask_for_their_part_are_lost() -> None:
    world = World()
    world.join_all("a", "b", session_ms=LONG_SESSION_MS)
    world.ask_to_sync("a", {})
    assert world.state == "Stable"
    world.pass_time(REBALANCE_MS)
    assert world.ids == ["a"]
    assert world.state == "PreparingRebalance"


def test_nobody_is_lost_once_all_have_asked_for_their_part() -> None:
    world = World()
    world.form("a", "b", session_ms=LONG_SESSION_MS)
    world.pass_time(REBALANCE_MS)
    assert world.ids == ["a", "b"]
    assert world.state == "Stable"


def test_a_member_that_waits_for_the_leader_is_not_lost() -> None:
    world = World()
    world.ask_to_join(gets="a", session_ms=LONG_SESSION_MS)
    world.join_all("b", session_ms=SESSION_MS)
    waiting = world.ask_to_sync("b")
    world.pass_time(3 * SESSION_MS)
    world.ask_to_sync("a", {"b": b"2"})
    assert world.assigned(waiting) == b"2"
    world.pass_time(SESSION_MS - 1)
    assert "b" in world.ids
    world.pass_time(1)
    assert "b" not in world.ids


def test_a_static_member_that_waited_for_a_leader_in_vain_is_expected_to_be_heard_of() -> None:
    world = World()
    world.ask_to_join(gets="a", session_ms=LONG_SESSION_MS)
    world.ask_to_join(gets="s", instance="s", session_ms=SESSION_MS)
    world.join_all()
    waiting = world.ask_to_sync("s")
    world.pass_time(2 * SESSION_MS)
    world.leave(("a", None))
    assert world.error(waiting) is RebalanceInProgress
    world.pass_time(SESSION_MS - 1)
    assert world.ids == ["s"]
    world.pass_time(1)
    assert world.state == "Empty"
