"""Members of the classic protocol in a consumer group, and groups that change their protocol."""

import pytest

from lamina.coordinators.consumer import GroupDecision, upgrade_and_join
from lamina.coordinators.conversion import ClassicGroupSnapshot, ClassicMemberSnapshot
from lamina.coordinators.decision import Now
from lamina.coordinators.group_context import GroupSettings
from lamina.coordinators.group_requests import (
    ConsumerHeartbeatRequest,
    ConsumerHeartbeatResponse,
    JoinResponse,
    LeavingMember,
    SyncResponse,
)
from lamina.coordinators.records.consumer_protocol import write_assignment
from lamina.coordinators.records.group_records import (
    ClassicGroupKey,
    ClassicGroupValue,
    ConsumerMemberKey,
    GroupRecord,
)
from lamina.errors import (
    FencedInstanceId,
    GroupIdNotFound,
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidSessionTimeout,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from tests.coordinators.consumer_world import CLIENT, GROUP, World, durable, subscription


def assigned_bytes(**partitions: tuple[int, ...]) -> bytes:
    return write_assignment(partitions, 3)


def mixed_world() -> World:
    """A member of the consumer protocol and one of the classic, settled, over two partitions."""
    world = World(a=2)
    world.join("new", "a")
    world.classic_join("old", "a")
    world.beat("new", 1, owned=world.ids(a=(0, 1)))
    world.beat("new", 1, owned=world.ids(a=(0,)))
    world.classic_join("old", "a")
    world.classic_sync("old", 2)
    assert world.group.state.name == "Stable"
    return world


# Members of the classic protocol


def test_a_classic_member_is_told_its_id_first() -> None:
    world = World(a=1)
    world.join("new", "a")
    response, records = world.classic_join("", "a")
    assert (response.member_id, records) == ("made-by-broker", [])
    assert isinstance(response.error, MemberIdRequired)
    assert world.classic_join("", "a", requires_known_member_id=False)[0].generation == 2


def test_a_classic_member_gets_its_share_by_joining_syncing_and_joining_again() -> None:
    world = World(a=2)
    world.join("new", "a")
    response, _ = world.classic_join("old", "a")
    assert response == JoinResponse("old", 2, "consumer", "range")
    assert world.classic_sync("old", 2) == SyncResponse("consumer", "range", assigned_bytes())
    assert world.classic_beat("old", 2) is None, "what it shall have is not free yet"
    world.beat("new", 1, owned=world.ids(a=(0, 1)))
    world.beat("new", 1, owned=world.ids(a=(0,)))
    assert isinstance(world.classic_beat("old", 2), RebalanceInProgress)
    assert world.classic_join("old", "a")[0].generation == 2
    assert world.classic_sync("old", 2) == SyncResponse("consumer", "range", assigned_bytes(a=(1,)))
    assert world.classic_beat("old", 2) is None


def test_a_classic_member_gives_up_partitions_by_joining_without_them() -> None:
    world = mixed_world()
    world.classic_join("another", "a")
    assert isinstance(world.classic_beat("old", 2), RebalanceInProgress)
    response, _ = world.classic_join("old", "a", owned={"a": (1,)})
    assert response.generation == 2, "it still owns what it shall give up"
    assert world.classic_sync("old", 2) == SyncResponse("consumer", "range", assigned_bytes())
    assert isinstance(world.classic_beat("old", 2), RebalanceInProgress)
    assert world.classic_join("old", "a", owned={})[0].generation == 3


def test_a_classic_member_is_called_when_topics_change() -> None:
    world = mixed_world()
    world.grow_topic("a", 4)
    assert isinstance(world.classic_beat("old", 2), RebalanceInProgress)
    assert world.group.state.epoch == 3
    assert world.classic_join("old", "a", owned={"a": (1,)})[0].generation == 3
    assert world.classic_sync("old", 3) == SyncResponse("consumer", "range", assigned_bytes(a=(1, 3)))


def test_a_classic_member_that_is_called_has_its_rebalance_timeout_to_join() -> None:
    world = mixed_world()
    world.join("newer", "a")
    world.classic_beat("old", 2)
    called_at_ms = world.now_ms
    world.pass_time(30_000)
    world.classic_beat("old", 2)
    assert world.timers[(GROUP, "join", "old")] == called_at_ms + 60_000
    world.beat("new", world.epoch("new"))
    world.beat("newer", world.epoch("newer"))
    world.pass_time(30_000)
    assert set(world.group.state.members) == {"new", "newer"}


def test_a_classic_member_that_does_not_sync_is_removed() -> None:
    world = World(a=2)
    world.join("new", "a")
    world.classic_join("old", "a", session_timeout_ms=100_000)
    world.beat("new", 1, owned=world.ids(a=(0,)))
    world.pass_time(40_000)
    world.beat("new", 2)
    world.pass_time(20_000)
    assert set(world.group.state.members) == {"new"}


def test_sync_is_refused_while_the_member_should_join() -> None:
    world = mixed_world()
    world.join("newer", "a")
    assert isinstance(world.classic_sync("old", 2), RebalanceInProgress)
    assert (GROUP, "join", "old") in world.timers


def test_wrong_generations_members_and_protocols_are_refused() -> None:
    world = mixed_world()
    with pytest.raises(IllegalGeneration):
        world.classic_beat("old", 1)
    with pytest.raises(UnknownMemberId, match="classic protocol"):
        world.classic_beat("new", 2)
    with pytest.raises(UnknownMemberId):
        world.classic_beat("nobody", 2)
    with pytest.raises(UnknownMemberId):
        world.classic_beat("old", 2, instance_id="i")
    with pytest.raises(InconsistentGroupProtocol):
        world.classic_sync("old", 2, protocol="roundrobin")
    with pytest.raises(InconsistentGroupProtocol):
        world.classic_sync("old", 2, protocol_type="connect")
    with pytest.raises(InconsistentGroupProtocol):
        world.classic_join("older", "a", protocols=("roundrobin",))
    with pytest.raises(InconsistentGroupProtocol):
        world.classic_join("older", "a", protocol_type="connect")
    with pytest.raises(InconsistentGroupProtocol, match="cannot be read"):
        world.classic_join("older", metadata=b"{")
    with pytest.raises(InvalidSessionTimeout):
        world.classic_join("older", "a", session_timeout_ms=1)
    world.settings = GroupSettings(consumer_max_size=2)
    with pytest.raises(GroupMaxSizeReached):
        world.classic_join("older", "a")


def test_a_classic_member_commits_by_its_generation_with_any_version() -> None:
    world = mixed_world()
    world.group.check_commit("old", 2, False, 2)
    with pytest.raises(IllegalGeneration):
        world.group.check_commit("old", 1, False, 8)
    assert [member.type for member in world.group.describe(world.context).members] == [1, 0]


def test_a_classic_member_that_moves_to_the_consumer_protocol_keeps_its_place() -> None:
    world = World(a=2)
    world.join("new", "a")
    world.classic_join("", "a", instance_id="i")
    world.beat("new", 1, owned=world.ids(a=(1,)))
    world.classic_join("made-by-broker", "a", instance_id="i")
    response = world.join("moved", "a", instance_id="i")
    assert response.assignment == world.ids(a=(0,))
    assert set(world.group.state.members) == {"new", "moved"}
    assert world.group.state.classic_count == 0
    assert {name[1] for name in world.timers} == {"session"}


def test_members_leave_by_id_by_instance_and_with_an_error_each() -> None:
    world = World(a=3)
    world.join("new", "a")
    world.classic_join("old", "a")
    world.classic_join("", "a", instance_id="i")
    epoch = world.group.state.epoch
    response, records = world.classic_leave(
        LeavingMember("old", None),
        LeavingMember("", "i"),
        LeavingMember("nobody", None),
        LeavingMember("other", "i"),
    )
    assert [(identity.member_id, type(error)) for identity, error in response.members] == [
        ("old", type(None)),
        ("made-by-broker", type(None)),
        ("nobody", UnknownMemberId),
        ("other", FencedInstanceId),
    ]
    assert len(records) == 7
    assert (set(world.group.state.members), world.group.state.epoch) == ({"new"}, epoch + 1)
    assert world.classic_leave(LeavingMember("nobody", None))[1] == []


# From consumer to classic


def test_a_group_becomes_classic_with_its_last_member_of_the_consumer_protocol() -> None:
    world = mixed_world()
    _, records = world.beat("new", -1)
    assert records[-1].key == ClassicGroupKey(GROUP)
    value = records[-1].value
    assert isinstance(value, ClassicGroupValue)
    assert value[:5] == ("consumer", 2, "range", "old", world.now.wall_ms)
    (member,) = value.members
    assert (member.member_id, member.subscription) == ("old", subscription(["a"]))
    assert (member.session_timeout_ms, member.assignment) == (45_000, assigned_bytes(a=(1,)))
    assert durable(world.group) == durable(World().group)
    assert world.timers == {(GROUP, "downgraded-by-leaving"): world.now_ms}


@pytest.mark.parametrize(
    "settings",
    [
        GroupSettings(consumer_migration_policy="upgrade"),
        GroupSettings(consumer_migration_policy="disabled"),
        GroupSettings(max_size=0),
    ],
)
def test_a_group_stays_a_consumer_group_if_it_may_not_become_classic(settings: GroupSettings) -> None:
    world = mixed_world()
    world.settings = settings
    world.beat("new", -1)
    assert set(world.group.state.members) == {"old"}


def test_a_session_that_ends_makes_a_group_classic_too() -> None:
    world = mixed_world()
    world.pass_time(40_000)
    world.classic_beat("old", 2)
    world.pass_time(5_000)
    assert isinstance(world.log[-1].value, ClassicGroupValue)


def test_the_protocol_that_most_prefer_of_those_that_all_know_is_chosen() -> None:
    world = World(a=3)
    world.join("new", "a")
    world.classic_join("x", "a", protocols=("sticky", "range"))
    world.classic_join("y", "a", protocols=("range", "sticky"))
    world.classic_join("z", "a", protocols=("other", "range", "sticky"))
    world.beat("new", -1)
    value = world.log[-1].value
    assert isinstance(value, ClassicGroupValue)
    assert value.protocol == "range"


def test_a_static_member_that_comes_back_with_the_classic_protocol_may_make_the_group_classic() -> None:
    world = World(a=2)
    world.join("new", "a", instance_id="i")
    world.classic_join("old", "a")
    response, records = world.classic_join("", "a", instance_id="i")
    assert response.member_id == "made-by-broker"
    value = records[-1].value
    assert isinstance(value, ClassicGroupValue)
    assert {member.member_id: member.assignment for member in value.members} == {
        "old": assigned_bytes(a=(1,)),
        "made-by-broker": assigned_bytes(a=(0,)),
    }
    assert durable(world.group) == durable(World().group)
    assert world.timers == {(GROUP, "downgraded"): world.now_ms}


# From classic to consumer


def classic_group(*, generation: int = 7, protocol_type: str = "consumer", user: str = "") -> ClassicGroupSnapshot:
    def member(name: str, partition: int) -> ClassicMemberSnapshot:
        assignment = write_assignment({"a": (partition,), "gone": (0,)}, 3)
        if user:
            assignment = assignment[:-4] + len(user).to_bytes(4) + user.encode()
        protocols = (("other", b"{"), ("range", subscription(["a"])))
        return ClassicMemberSnapshot(name, None, "client", "/127.0.0.1", 60_000, 30_000, protocols, assignment)

    return ClassicGroupSnapshot(GROUP, protocol_type, "range", generation, (member("x", 0), member("y", 1)))


def upgrade(world: World, group: ClassicGroupSnapshot) -> GroupDecision:
    request = ConsumerHeartbeatRequest(GROUP, "new", 0, None, None, 60_000, ("a",), None, None, {}, CLIENT, "")
    _, decision = upgrade_and_join(group, request, 1, Now(0, world.now_ms), world.context)
    return decision


def test_a_classic_group_becomes_a_consumer_group_with_the_same_assignment() -> None:
    world = World(a=3)
    decision = upgrade(world, classic_group())
    assert decision.records[0] == GroupRecord(ClassicGroupKey(GROUP), None)
    world.carry_out(decision)
    assert world.replies[1] == ConsumerHeartbeatResponse("new", 8, 5_000, {})
    assert (world.assigned("x"), world.assigned("y")) == (world.ids(a=(0,)), world.ids(a=(1,)))
    assert (world.epoch("x"), world.group.state.epoch) == (7, 8)
    assert world.timers[(GROUP, "session", "x")] == world.now_ms + 30_000
    assert isinstance(world.classic_beat("x", 7), RebalanceInProgress)


def test_everybody_ends_up_with_a_share_after_an_upgrade() -> None:
    world = World(a=3)
    world.carry_out(upgrade(world, classic_group()))
    for _ in range(3):
        world.beat("new", world.epoch("new"), owned=world.assigned("new"))
        for name in ("x", "y"):
            owned = world.assigned(name)
            world.classic_join(name, "a", owned={"a": owned[world.id("a")]} if owned else {}, protocols=("range",))
    assert world.group.state.name == "Stable"
    assert all(len(world.assigned(name)[world.id("a")]) == 1 for name in ("new", "x", "y"))


@pytest.mark.parametrize(
    ("group", "settings"),
    [
        (classic_group(), GroupSettings(consumer_migration_policy="downgrade")),
        (classic_group(), GroupSettings(consumer_migration_policy="disabled")),
        (classic_group(), GroupSettings(consumer_max_size=1)),
        (classic_group(protocol_type="connect"), GroupSettings()),
        (classic_group(user="kept by an assignor"), GroupSettings()),
        (classic_group()._replace(protocol="other"), GroupSettings()),
    ],
)
def test_a_classic_group_that_must_stay_one_is_not_a_consumer_group(
    group: ClassicGroupSnapshot, settings: GroupSettings
) -> None:
    world = World(settings, a=3)
    with pytest.raises(GroupIdNotFound):
        upgrade(world, group)


def test_a_classic_group_without_members_gives_way_whatever_the_policy() -> None:
    world = World(GroupSettings(consumer_migration_policy="disabled"), a=1)
    decision = upgrade(world, ClassicGroupSnapshot(GROUP, "connect", None, 4, ()))
    assert decision.records[0] == GroupRecord(ClassicGroupKey(GROUP), None)
    world.carry_out(decision)
    assert world.replies[1] == ConsumerHeartbeatResponse("new", 1, 5_000, world.ids(a=(0,)))


def test_a_classic_member_that_waited_to_sync_in_an_upgraded_group_is_told_to_join_again() -> None:
    world = World(a=3)
    world.carry_out(upgrade(world, classic_group()))
    assert isinstance(world.classic_sync("x", 7), RebalanceInProgress)


def test_a_classic_member_that_moves_to_the_consumer_protocol_under_its_id_has_no_timers_left_of_it() -> None:
    world = mixed_world()
    world.join("newer", "a")
    world.classic_beat("old", 2)
    assert (GROUP, "join", "old") in world.timers
    world.join("old", "a")
    assert {name[1] for name in world.timers if name[2] == "old"} == {"session"}


def test_a_group_whose_members_have_no_protocol_in_common_stays_a_consumer_group() -> None:
    world = mixed_world()
    subscription = world.group.state.members["old"].subscription
    assert subscription.classic is not None
    other = subscription._replace(classic=subscription.classic._replace(protocols=(("sticky", b""),)))
    world.carry_out(GroupDecision([GroupRecord(ConsumerMemberKey(GROUP, "older"), other)]))
    world.beat("new", -1)
    assert set(world.group.state.members) == {"old", "older"}


def test_a_member_that_has_not_synced_yet_has_nothing() -> None:
    world = World(a=3)
    group = classic_group()
    world.carry_out(upgrade(world, group._replace(members=(group.members[0]._replace(assignment=b""),))))
    assert world.assigned("x") == {}


def test_converted_groups_load_from_their_log() -> None:
    world = World(a=3)
    world.carry_out(upgrade(world, classic_group()))
    before = durable(world.group)
    world.load()
    assert durable(world.group) == before
