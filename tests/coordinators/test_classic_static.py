"""Static members of a classic group: they come back under their instance id without a rebalance."""

from lamina.coordinators.group_requests import Client
from lamina.errors import FencedInstanceId, GroupMaxSizeReached, UnknownMemberId
from tests.coordinators.classic_world import (
    DELAY_MS,
    RANGE_OR_STICKY,
    REBALANCE_MS,
    SESSION_MS,
    STICKY_OR_RANGE,
    World,
    subscribed,
)

LONG_SESSION_MS = 10 * REBALANCE_MS


def come_back(world: World, instance: str, **how: object) -> int:
    """Under the id ``instance-2``."""
    return world.ask_to_join(gets=f"{instance}-2", instance=instance, **how)  # type: ignore[arg-type]


def test_a_follower_comes_back_without_a_rebalance() -> None:
    world = World()
    world.form_static("i", "j")
    response = world.joined(come_back(world, "j"))
    assert (response.member_id, response.generation, response.leader) == ("j-2", 1, "i-1")
    assert (response.members, response.skip_assignment) == ((), False)
    assert world.state == "Stable"
    assert world.assigned(world.ask_to_sync("j-2", instance="j")) == b"j-1 in 1"


def test_the_new_id_is_stored_at_once() -> None:
    world = World()
    world.form_static("i", "j")
    come_back(world, "j", client=Client("new", "/10.0.0.9"))
    assert world.group.stored == world.group.record().value
    world.load()
    assert world.ids == ["i-1", "j-2"]
    assert world.heartbeat("j-2", instance="j") is None


def test_a_leader_that_comes_back_is_told_to_skip_the_assignment() -> None:
    world = World()
    world.form_static("i", "j")
    response = world.joined(come_back(world, "i"))
    assert (response.leader, response.skip_assignment) == ("i-2", True)
    assert [member.member_id for member in response.members] == ["i-2", "j-1"]
    assert world.group.members.leader == "i-2"


def test_a_leader_that_comes_back_and_cannot_skip_is_told_that_it_does_not_lead() -> None:
    world = World()
    world.form_static("i", "j")
    response = world.joined(come_back(world, "i", may_skip=False))
    assert (response.member_id, response.leader, response.members) == ("i-2", "i-1", ())
    assert not response.skip_assignment


def test_a_member_that_comes_back_with_another_subscription_does_not_cause_a_rebalance() -> None:
    world = World()
    world.form_static("i", "j")
    world.joined(come_back(world, "j", protocols=(("range", subscribed("other")),)))
    assert world.state == "Stable"
    assert world.group.is_subscribed_to("other")


def test_a_member_that_comes_back_and_changes_the_vote_causes_a_rebalance() -> None:
    world = World()
    world.form_static("i", protocols=RANGE_OR_STICKY)
    response = world.joined(come_back(world, "i", protocols=STICKY_OR_RANGE))
    assert (response.generation, response.protocol, response.skip_assignment) == (2, "sticky", False)
    assert world.state == "CompletingRebalance"


def test_a_member_that_comes_back_while_the_generation_is_assigned_begins_again() -> None:
    world = World()
    world.ask_to_join(gets="i-1", instance="i")
    world.ask_to_join(gets="j-1", instance="j")
    world.join_all()
    syncing = world.ask_to_sync("j-1", instance="j")
    again = come_back(world, "j")
    assert world.error(syncing) is FencedInstanceId
    assert world.state == "PreparingRebalance"
    world.ask_to_join("i-1", instance="i")
    assert world.joined(again).generation == 2


def test_whoever_waits_under_the_old_id_is_fenced() -> None:
    world = World()
    world.form_static("i", "j")
    old = world.ask_to_join("i-1", instance="i")
    new = come_back(world, "i")
    assert world.error(old) is FencedInstanceId
    assert new in world.waiting
    world.ask_to_join("j-1", instance="j")
    assert world.joined(new).leader == "i-2"


def test_the_old_id_is_fenced_in_everything() -> None:
    world = World()
    world.form_static("i")
    come_back(world, "i")
    assert isinstance(world.heartbeat("i-1", instance="i"), FencedInstanceId)
    assert isinstance(world.heartbeat("i-1"), UnknownMemberId)
    assert world.error(world.ask_to_join("i-1", instance="i")) is FencedInstanceId
    assert world.error(world.ask_to_join("i-1", instance="k")) is UnknownMemberId


def test_the_old_session_ends_and_a_new_one_begins() -> None:
    world = World()
    world.form_static("i")
    world.pass_time(SESSION_MS - 1)
    come_back(world, "i")
    world.pass_time(SESSION_MS - 1)
    assert world.ids == ["i-2"]
    world.pass_time(1)
    assert world.state == "Empty"


def test_a_member_that_comes_back_before_the_first_generation_is_waited_for() -> None:
    world = World(delay_ms=2 * SESSION_MS)
    old = world.ask_to_join(gets="i-1", instance="i")
    new = come_back(world, "i")
    assert world.error(old) is FencedInstanceId
    world.pass_time(2 * SESSION_MS)
    assert world.joined(new).generation == 1


def test_a_static_member_that_is_away_stays_in_the_next_generation() -> None:
    world = World()
    world.ask_to_join(gets="i-1", instance="i", session_ms=LONG_SESSION_MS)
    world.join_all("b", session_ms=LONG_SESSION_MS)
    world.assign()
    joining = world.ask_to_join("b", protocols=RANGE_OR_STICKY)
    world.pass_time(REBALANCE_MS)
    response = world.joined(joining)
    assert response.leader == "b"
    assert [member.member_id for member in response.members] == ["i-1", "b"]
    world.assign()
    assert world.state == "Stable"
    assert world.joined(come_back(world, "i")).generation == 2
    assert world.assigned(world.ask_to_sync("i-2")) == b"i-1 in 2"


def test_static_members_that_are_all_away_are_given_as_long_again() -> None:
    world = World()
    world.form_static("i", "j", session_ms=LONG_SESSION_MS)
    world.ask_to_join(gets="b", session_ms=LONG_SESSION_MS)
    world.leave(("b", None))
    world.pass_time(REBALANCE_MS)
    assert (world.state, world.group.generation) == ("PreparingRebalance", 1)
    joining = world.ask_to_join("j-1", instance="j")
    world.pass_time(REBALANCE_MS)
    assert world.joined(joining).generation == 2
    assert world.joined(joining).leader == "j-1"


def test_static_members_that_are_all_away_for_a_session_are_lost() -> None:
    world = World()
    world.form_static("i", "j", session_ms=2 * REBALANCE_MS)
    world.ask_to_join(gets="b")
    world.leave(("b", None))
    world.pass_time(2 * REBALANCE_MS)
    assert world.state == "Empty"
    assert world.timers == {}


def test_a_static_member_that_bounces_in_a_full_group_is_turned_away_as_in_kafka() -> None:
    """It comes without its id, so that it counts as new; its old self stays until its session is over."""
    world = World(max_size=2)
    world.form_static("i", "j")
    assert world.error(come_back(world, "i")) is GroupMaxSizeReached
    assert world.error(world.ask_to_join(gets="k-1", instance="k")) is GroupMaxSizeReached
    assert world.heartbeat("i-1", instance="i") is None
    world.pass_time(SESSION_MS - 1)
    world.heartbeat("j-1", instance="j")
    world.pass_time(1)
    assert world.ids == ["j-1"]
    assert come_back(world, "i") in world.waiting


def test_a_static_member_that_waits_is_not_replaced_while_a_full_group_rebalances() -> None:
    world = World(max_size=1)
    first = world.ask_to_join(gets="i-1", instance="i")
    assert world.error(come_back(world, "i")) is GroupMaxSizeReached
    world.pass_time(DELAY_MS)
    assert world.joined(first).generation == 1
