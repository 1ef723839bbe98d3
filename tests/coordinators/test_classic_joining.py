"""Joining a classic group: the two steps, the checks, who is waited for and how long."""

import pytest

from lamina.coordinators.group_requests import JoinedMember, JoinResponse
from lamina.errors import (
    GroupMaxSizeReached,
    InconsistentGroupProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from tests.coordinators.classic_world import (
    DELAY_MS,
    RANGE,
    RANGE_OR_STICKY,
    REBALANCE_MS,
    SESSION_MS,
    STICKY,
    STICKY_OR_RANGE,
    World,
    subscribed,
)

FIVE_MINUTES_MS = 300_000


# The two steps


def test_a_new_dynamic_member_is_told_its_id_and_joins_with_it() -> None:
    world = World(delay_ms=0)
    first = world.ask_to_join(gets="a", two_step=True)
    assert world.error(first) is MemberIdRequired
    response = world.replies[first]
    assert isinstance(response, JoinResponse)
    assert response.member_id == "a"
    assert world.state == "Empty"
    second = world.ask_to_join("a", two_step=True)
    assert world.joined(second).member_id == "a"
    assert world.joined(second).generation == 1


def test_a_new_member_of_an_old_client_joins_in_one_step() -> None:
    world = World(delay_ms=0)
    assert world.joined(world.ask_to_join(gets="a")).member_id == "a"


def test_a_new_static_member_joins_in_one_step() -> None:
    world = World(delay_ms=0)
    assert world.joined(world.ask_to_join(gets="a", instance="i", two_step=True)).member_id == "a"


def test_an_id_that_is_not_used_within_a_session_is_forgotten() -> None:
    world = World()
    world.ask_to_join(gets="a", two_step=True)
    world.pass_time(SESSION_MS - 1)
    assert not world.group.is_abandoned
    world.pass_time(1)
    assert world.group.is_abandoned
    assert world.error(world.ask_to_join("a")) is UnknownMemberId


def test_an_id_that_was_given_out_cannot_be_used_by_a_static_member() -> None:
    world = World()
    world.ask_to_join(gets="a", two_step=True)
    assert world.error(world.ask_to_join("a", instance="i")) is UnknownMemberId
    assert not world.group.is_abandoned


def test_whoever_was_told_an_id_is_waited_for_in_a_rebalance() -> None:
    world = World()
    world.form("a")
    world.ask_to_join(gets="b", two_step=True)
    again = world.ask_to_join("a")
    assert again in world.waiting
    joined = world.ask_to_join("b")
    assert world.joined(again).generation == world.joined(joined).generation == 2


def test_a_rebalance_goes_on_when_the_id_it_waited_for_is_forgotten() -> None:
    world = World()
    world.form("a")
    world.ask_to_join(gets="b", two_step=True)
    again = world.ask_to_join("a")
    world.pass_time(SESSION_MS)
    assert world.joined(again).generation == 2


def test_a_rebalance_goes_on_when_whoever_was_told_an_id_leaves() -> None:
    world = World()
    world.form("a")
    world.ask_to_join(gets="b", two_step=True)
    again = world.ask_to_join("a")
    assert world.leave(("b", None)) == [None]
    assert world.joined(again).generation == 2


# Checks


@pytest.mark.parametrize("how", [{"protocol_type": ""}, {"protocols": ()}], ids=["type", "protocols"])
def test_a_member_must_name_a_type_and_a_protocol(how: dict[str, object]) -> None:
    world = World()
    assert world.error(world.ask_to_join(gets="a", **how)) is InconsistentGroupProtocol  # type: ignore[arg-type]


def test_a_member_of_another_type_is_refused() -> None:
    world = World()
    world.form("a")
    assert world.error(world.ask_to_join(gets="b", protocol_type="connect")) is InconsistentGroupProtocol
    assert world.error(world.ask_to_join("a", protocol_type="connect")) is InconsistentGroupProtocol


def test_a_member_that_shares_no_protocol_with_all_others_is_refused() -> None:
    world = World()
    world.join_all("a", "b", protocols=RANGE_OR_STICKY)
    world.ask_to_join("a", protocols=RANGE)
    assert world.error(world.ask_to_join(gets="c", protocols=STICKY)) is InconsistentGroupProtocol


def test_an_empty_group_takes_members_of_another_type() -> None:
    world = World(delay_ms=0)
    world.form("a")
    world.leave(("a", None))
    assert world.joined(world.ask_to_join(gets="b", protocol_type="connect")).protocol_type == "connect"


def test_the_protocols_are_checked_before_the_member() -> None:
    world = World()
    world.form("a")
    assert world.error(world.ask_to_join("nobody", protocols=STICKY)) is InconsistentGroupProtocol


def test_nobody_joins_with_an_id_that_the_group_does_not_know() -> None:
    world = World()
    world.form("a")
    assert world.error(world.ask_to_join("nobody")) is UnknownMemberId


# The first generation


def test_the_first_generation_waits_for_others_to_come() -> None:
    world = World()
    first = world.ask_to_join(gets="a")
    world.pass_time(DELAY_MS - 1)
    assert first in world.waiting
    world.pass_time(1)
    response = world.joined(first)
    assert response == JoinResponse(
        "a", 1, "consumer", "range", "a", members=(JoinedMember("a", None, subscribed("t")),)
    )
    assert world.state == "CompletingRebalance"


def test_the_first_generation_waits_longer_while_others_come() -> None:
    world = World()
    first = world.ask_to_join(gets="a")
    world.pass_time(DELAY_MS - 1)
    second = world.ask_to_join(gets="b")
    world.pass_time(1)
    assert {first, second} <= world.waiting
    world.pass_time(DELAY_MS)
    assert world.joined(first).generation == world.joined(second).generation == 1
    assert [member.member_id for member in world.joined(first).members] == ["a", "b"]
    assert world.joined(second).members == ()
    assert world.joined(second).leader == "a"


def test_the_first_generation_waits_no_longer_than_the_rebalance_timeout() -> None:
    world = World()
    first = world.ask_to_join(gets="a", rebalance_ms=10_000)
    for number in range(9):
        world.pass_time(1_000)
        world.ask_to_join(gets=f"m{number}")
    assert first in world.waiting
    world.pass_time(1_000)
    assert len(world.joined(first).members) == 10


def test_the_first_generation_begins_at_once_without_a_delay() -> None:
    world = World(delay_ms=0)
    assert world.joined(world.ask_to_join(gets="a")).generation == 1


def test_the_first_generation_is_empty_when_all_who_came_have_left() -> None:
    world = World()
    joining = world.ask_to_join(gets="a")
    world.leave(("a", None))
    assert world.error(joining) is UnknownMemberId
    world.pass_time(DELAY_MS)
    assert (world.state, world.group.generation) == ("Empty", 1)


def test_a_group_that_became_empty_waits_for_others_again() -> None:
    world = World()
    world.form("a")
    world.leave(("a", None))
    again = world.ask_to_join(gets="b")
    assert again in world.waiting
    world.pass_time(DELAY_MS)
    assert world.joined(again).generation == 3


# Later generations


def test_a_new_member_makes_all_others_join_again() -> None:
    world = World()
    world.form("a", "b")
    third = world.ask_to_join(gets="c")
    assert world.heartbeat("a") is not None
    first, second = world.ask_to_join("a"), world.ask_to_join("b")
    responses = [world.joined(waiter) for waiter in (first, second, third)]
    assert {response.generation for response in responses} == {2}
    assert {response.leader for response in responses} == {"a"}


def test_members_that_do_not_join_again_in_time_are_lost() -> None:
    world = World()
    world.form("a", "b", session_ms=2 * REBALANCE_MS)
    first = world.ask_to_join("a")
    world.pass_time(REBALANCE_MS - 1)
    assert first in world.waiting
    world.pass_time(1)
    assert world.joined(first).generation == 2
    assert world.ids == ["a"]
    assert (("g", "session", "b")) not in world.timers


def test_the_longest_rebalance_timeout_counts() -> None:
    world = World()
    world.ask_to_join(gets="a", rebalance_ms=1_000, session_ms=120_000)
    world.join_all("b", rebalance_ms=90_000, session_ms=120_000)
    world.assign()
    first = world.ask_to_join("a", rebalance_ms=1_000)
    world.pass_time(89_999)
    assert first in world.waiting
    world.pass_time(1)
    assert world.joined(first).generation == 2


def test_a_member_that_waits_for_others_is_not_lost() -> None:
    world = World()
    world.form("a", "b", session_ms=SESSION_MS)
    first = world.ask_to_join("a")
    for _ in range(5):
        world.pass_time(SESSION_MS - 1)
        assert isinstance(world.heartbeat("b"), RebalanceInProgress)
    assert first in world.waiting
    world.ask_to_join("b")
    assert world.joined(first).generation == 2
    world.pass_time(SESSION_MS)
    assert "a" not in world.ids


def test_a_new_member_waits_for_five_minutes_at_most() -> None:
    world = World()
    world.form("a", rebalance_ms=2 * FIVE_MINUTES_MS, session_ms=2 * FIVE_MINUTES_MS)
    new = world.ask_to_join(gets="b")
    world.pass_time(FIVE_MINUTES_MS - 1)
    assert new in world.waiting
    world.pass_time(1)
    assert world.error(new) is UnknownMemberId
    assert world.ids == ["a"]


def test_a_member_that_joins_twice_gets_its_answer_in_the_newer_request() -> None:
    world = World()
    world.form("a", "b")
    older, newer = world.ask_to_join("a"), world.ask_to_join("a")
    assert world.error(older) is RebalanceInProgress
    world.ask_to_join("b")
    assert world.joined(newer).generation == 2


# Joining again


def test_a_member_that_missed_the_generation_is_told_again_while_it_is_assigned() -> None:
    world = World()
    world.join_all("a", "b")
    leader, follower = world.joined(world.ask_to_join("a")), world.joined(world.ask_to_join("b"))
    assert leader.generation == follower.generation == 1
    assert len(leader.members) == 2
    assert follower.members == ()
    assert world.state == "CompletingRebalance"


def test_what_a_member_says_when_it_is_told_again_changes_nothing() -> None:
    world = World()
    world.form("a", "b")
    before = world.group.record().value
    world.ask_to_join("b", session_ms=1, rebalance_ms=2)
    assert world.group.record().value == before == world.group.stored


def test_other_protocols_begin_again_while_the_generation_is_assigned() -> None:
    world = World()
    world.join_all("a", "b")
    syncing = world.ask_to_sync("b")
    world.ask_to_join("a", protocols=RANGE_OR_STICKY)
    assert world.state == "PreparingRebalance"
    assert world.error(syncing) is RebalanceInProgress


def test_a_follower_that_joins_a_stable_group_again_is_told_what_it_was() -> None:
    world = World()
    world.form("a", "b")
    response = world.joined(world.ask_to_join("b"))
    assert (response.generation, response.leader, response.members) == (1, "a", ())
    assert world.state == "Stable"


def test_a_follower_with_another_subscription_makes_a_stable_group_rebalance() -> None:
    world = World()
    world.form("a", "b")
    assert world.ask_to_join("b", protocols=(("range", subscribed("other")),)) in world.waiting
    assert world.state == "PreparingRebalance"


def test_a_leader_that_joins_again_makes_a_stable_group_rebalance() -> None:
    world = World()
    world.form("a", "b")
    assert world.ask_to_join("a") in world.waiting
    assert world.state == "PreparingRebalance"


def test_a_member_that_is_alone_and_joins_again_begins_the_next_generation_at_once() -> None:
    world = World()
    world.form("a")
    assert world.joined(world.ask_to_join("a")).generation == 2


# Votes and leaders


def test_the_protocol_that_most_prefer_is_chosen() -> None:
    world = World()
    world.ask_to_join(gets="a", protocols=RANGE_OR_STICKY)
    world.ask_to_join(gets="b", protocols=STICKY_OR_RANGE)
    third = world.ask_to_join(gets="c", protocols=STICKY_OR_RANGE)
    world.join_all()
    assert world.joined(third).protocol == "sticky"


def test_a_protocol_that_one_member_does_not_know_is_not_chosen() -> None:
    world = World()
    world.ask_to_join(gets="a", protocols=RANGE)
    world.ask_to_join(gets="b", protocols=STICKY_OR_RANGE)
    third = world.ask_to_join(gets="c", protocols=STICKY_OR_RANGE)
    world.join_all()
    assert world.joined(third).protocol == "range"


def test_the_leader_is_told_what_each_member_says_for_the_chosen_protocol() -> None:
    world = World()
    first = world.ask_to_join(gets="a", protocols=(("x", b"ax"), ("y", b"ay")), protocol_type="connect")
    world.ask_to_join(gets="b", protocols=(("y", b"by"),), protocol_type="connect")
    world.join_all()
    assert world.joined(first).members == (JoinedMember("a", None, b"ay"), JoinedMember("b", None, b"by"))


def test_another_leads_when_the_leader_does_not_join_again() -> None:
    world = World()
    world.form("a", "b", "c", session_ms=2 * REBALANCE_MS)
    world.ask_to_join(gets="d")
    world.ask_to_join("c")
    world.pass_time(REBALANCE_MS)
    assert world.ids == ["c", "d"]
    assert world.group.members.leader == "c"


def test_the_leader_stays_the_same_while_it_joins_again() -> None:
    world = World()
    world.form("a", "b")
    world.ask_to_join("b", protocols=RANGE_OR_STICKY)
    assert world.joined(world.ask_to_join("a")).leader == "a"


# group.max.size


def test_a_full_group_takes_no_new_member() -> None:
    world = World(max_size=2)
    world.form("a", "b")
    assert world.error(world.ask_to_join(gets="c")) is GroupMaxSizeReached
    assert world.state == "Stable"
    assert world.joined(world.ask_to_join("b")).generation == 1


def test_no_more_than_fit_into_a_group_begin_its_first_generation() -> None:
    world = World(max_size=2)
    waiters = world.join_all("a", "b", "c")
    assert world.error(waiters["c"]) is GroupMaxSizeReached
    assert world.ids == ["a", "b"]


def test_an_id_that_was_given_out_is_forgotten_when_the_group_is_full() -> None:
    world = World(max_size=1)
    world.ask_to_join(gets="late", two_step=True)
    world.form("a")
    assert world.error(world.ask_to_join("late")) is GroupMaxSizeReached
    assert world.error(world.ask_to_join("late")) is GroupMaxSizeReached
    assert not world.group.members.pending
    assert ("g", "pending", "late") not in world.timers


def test_whoever_joins_again_last_loses_its_place_to_a_newcomer() -> None:
    world = World(max_size=2)
    world.form("a", "b")
    first = world.ask_to_join("a")
    newcomer = world.ask_to_join(gets="c")
    assert {first, newcomer} <= world.waiting
    assert world.error(world.ask_to_join("b")) is GroupMaxSizeReached
    assert world.joined(first).generation == world.joined(newcomer).generation == 2
    assert world.ids == ["a", "c"]


def test_whoever_waits_already_may_ask_again_in_a_full_group() -> None:
    world = World(max_size=2)
    world.form("a", "b")
    world.ask_to_join("a")
    world.ask_to_join(gets="c")
    again = world.ask_to_join("a")
    assert again in world.waiting


def test_an_id_that_nobody_uses_ends_the_initial_delay_when_it_expires_and_all_others_have_joined() -> None:
    """As in Kafka, where only members that join extend the delay."""
    world = World()
    world.ask_to_join(gets="late", two_step=True, session_ms=DELAY_MS - 1)
    waiting = world.ask_to_join(gets="a")
    world.pass_time(DELAY_MS - 2)
    assert waiting in world.waiting
    world.pass_time(1)
    assert world.joined(waiting).generation == 1


def test_an_id_that_nobody_uses_holds_the_others_up_after_the_initial_delay_no_longer() -> None:
    world = World()
    world.ask_to_join(gets="late", two_step=True, session_ms=DELAY_MS + 1)
    waiting = world.ask_to_join(gets="a")
    world.pass_time(DELAY_MS)
    assert world.joined(waiting).generation == 1
