"""A classic group that is read from its log goes on where it was."""

from lamina.coordinators.records.group_records import ClassicGroupValue, ClassicMemberValue
from lamina.errors import GroupMaxSizeReached, RebalanceInProgress, UnknownMemberId
from tests.coordinators.classic_world import REBALANCE_MS, SESSION_MS, STICKY_OR_RANGE, World, subscribed


def member_value(member_id: str, **changes: object) -> ClassicMemberValue:
    value = ClassicMemberValue(member_id, None, "c", "/h", REBALANCE_MS, SESSION_MS, subscribed("t"), b"part")
    return value._replace(**changes)  # type: ignore[arg-type]


def group_value(*members: ClassicMemberValue, leader: str | None = None) -> ClassicGroupValue:
    return ClassicGroupValue("consumer", 5, "range", leader, 123, members)


def loaded(value: ClassicGroupValue, **settings: int) -> World:
    world = World(**settings)
    world.log.append(value)
    world.load()
    return world


def test_a_stable_group_goes_on_without_a_rebalance() -> None:
    world = World()
    world.form("a", "b")
    world.pass_time(SESSION_MS - 1)
    world.load()
    assert (world.state, world.ids, world.group.generation) == ("Stable", ["a", "b"], 1)
    world.pass_time(SESSION_MS - 1)
    assert world.heartbeat("a") is None
    assert world.heartbeat("b") is None
    assert world.assigned(world.ask_to_sync("b")) == b"b in 1"
    world.pass_time(SESSION_MS - 1)
    assert world.state == "Stable"
    assert world.group.is_subscribed_to("t")


def test_members_that_are_not_heard_of_after_loading_are_lost() -> None:
    world = World()
    world.form("a", "b")
    world.load()
    world.pass_time(SESSION_MS)
    assert world.state == "Empty"


def test_a_follower_that_says_after_loading_what_it_said_before_is_told_its_generation() -> None:
    world = World()
    world.form("a", "b")
    world.load()
    assert world.joined(world.ask_to_join("b")).generation == 1
    assert world.state == "Stable"
    world.ask_to_join("b", protocols=STICKY_OR_RANGE)
    assert world.state == "PreparingRebalance"


def test_a_generation_that_was_not_assigned_is_forgotten() -> None:
    world = World()
    world.form("a")
    world.ask_to_join("a")
    assert world.group.generation == 2
    world.load()
    assert (world.state, world.group.generation) == ("Stable", 1)


def test_an_empty_group_stays_empty() -> None:
    world = World()
    world.form("a")
    world.leave(("a", None))
    world.load()
    assert (world.state, world.group.generation, world.group.protocol_type) == ("Empty", 2, "consumer")
    assert world.timers == {}


def test_a_group_without_a_record_has_nothing() -> None:
    world = World()
    world.load()
    assert world.group.protocol_type is None
    assert world.error(world.ask_to_join("a")) is UnknownMemberId


def test_a_type_that_is_empty_is_none() -> None:
    assert loaded(ClassicGroupValue("", 0, None, None, 1, ())).group.protocol_type is None


def test_the_first_member_leads_if_the_record_names_no_leader() -> None:
    world = loaded(group_value(member_value("a"), member_value("b")))
    assert world.group.members.leader == "a"


def test_the_first_member_leads_if_the_leader_is_none_of_the_members() -> None:
    world = loaded(group_value(member_value("a"), member_value("b"), leader="gone"))
    assert world.group.members.leader == "a"


def test_a_member_without_a_rebalance_timeout_has_its_session_for_it() -> None:
    world = loaded(group_value(member_value("a", rebalance_timeout_ms=-1), leader="a"))
    assert world.group.members.rebalance_timeout_ms == SESSION_MS


def test_a_group_that_has_become_too_large_rebalances_and_takes_those_who_come_first() -> None:
    world = loaded(group_value(*(member_value(name) for name in "abc"), leader="a"), max_size=2)
    assert world.state == "PreparingRebalance"
    assert isinstance(world.heartbeat("a"), RebalanceInProgress)
    waiters = [world.ask_to_join(name) for name in "cab"]
    assert world.error(waiters[2]) is GroupMaxSizeReached
    assert world.joined(waiters[0]).generation == 6
    assert world.ids == ["a", "c"]


def test_members_that_want_no_time_to_join_again_do_not_keep_the_broker_busy() -> None:
    members = [member_value(name, instance_id=name, rebalance_timeout_ms=0) for name in "ab"]
    world = loaded(group_value(*members, leader="a"), max_size=1)
    world.pass_time(SESSION_MS - 1)
    assert world.state == "PreparingRebalance"
    assert world.fired <= 10
    joining = world.ask_to_join("b", instance="b", rebalance_ms=0)
    world.pass_time(1)
    assert world.joined(joining).generation == 6


def test_a_group_that_was_a_consumer_group_is_taken_over_as_it_is() -> None:
    world = World()
    world.group.replay(group_value(member_value("a"), leader="a"))
    world.group.take_up(group_value(member_value("a"), leader="a"))
    world.carry_out(world.group.on_timer(("g", "downgraded"), world.now))
    assert world.state == "Stable"
    assert world.heartbeat("a", generation=5) is None


def test_a_group_that_somebody_left_to_become_classic_rebalances() -> None:
    world = World()
    world.group.replay(group_value(member_value("a"), leader="a"))
    world.group.take_up(group_value(member_value("a"), leader="a"))
    world.carry_out(world.group.on_timer(("g", "downgraded-by-leaving"), world.now))
    assert world.state == "PreparingRebalance"
    assert world.joined(world.ask_to_join("a")).generation == 6
