"""The consumer protocol, rule by rule."""

from typing import Any

import pytest

from lamina.coordinators.consumer import ConsumerGroup, GroupDecision
from lamina.coordinators.group_context import GroupSettings
from lamina.coordinators.group_requests import Client, ConsumerHeartbeatResponse, GroupListing
from lamina.coordinators.reconciliation import MemberState
from lamina.coordinators.records.group_records import (
    ConsumerGroupKey,
    ConsumerGroupValue,
    ConsumerMemberKey,
    ConsumerMemberValue,
    CurrentAssignmentKey,
    CurrentAssignmentValue,
    GroupRecord,
    PartitionMetadataKey,
    PartitionMetadataValue,
    TargetAssignmentKey,
    TargetAssignmentValue,
    TargetEpochKey,
    TargetEpochValue,
)
from lamina.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    GroupMaxSizeReached,
    InvalidRequest,
    NonEmptyGroup,
    StaleMemberEpoch,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
    UnsupportedVersion,
)
from tests.coordinators.consumer_world import GROUP, World, durable

STABLE, UNREVOKED, UNRELEASED = (state.value for state in list(MemberState)[:3])


def kinds(records: list[GroupRecord]) -> list[str]:
    """What records are about, with a minus for tombstones."""
    return [("" if record.value is not None else "-") + type(record.key).__name__ for record in records]


# Joining


def test_the_first_member_gets_every_partition_at_epoch_one() -> None:
    world = World(a=3)
    response = world.join("m", "a")
    assert response == ConsumerHeartbeatResponse("m", 1, 5_000, world.ids(a=(0, 1, 2)))
    assert world.group.state.name == "Stable"


def test_joining_writes_member_epoch_target_and_assignment_in_this_order() -> None:
    world = World(a=2)
    _, records = world.beat("m", 0, topics=("b", "a", "a"), owned={}, rebalance_timeout_ms=60_000, rack_id="r")
    subscription = ConsumerMemberValue(None, "r", "client", "/127.0.0.1", ("a", "b"), None, 60_000, None)
    assert kinds(records) == [
        "ConsumerMemberKey",
        "ConsumerGroupKey",
        "TargetAssignmentKey",
        "TargetEpochKey",
        "CurrentAssignmentKey",
    ]
    assert records == [
        GroupRecord(ConsumerMemberKey(GROUP, "m"), subscription),
        GroupRecord(ConsumerGroupKey(GROUP), ConsumerGroupValue(1, world.group.state.metadata_hash)),
        GroupRecord(TargetAssignmentKey(GROUP, "m"), TargetAssignmentValue(world.ids(a=(0, 1)))),
        GroupRecord(TargetEpochKey(GROUP), TargetEpochValue(1)),
        GroupRecord(CurrentAssignmentKey(GROUP, "m"), CurrentAssignmentValue(1, 0, STABLE, world.ids(a=(0, 1)), {})),
    ]


def test_a_member_without_an_id_is_given_one_in_version_0() -> None:
    world = World(a=1)
    assert world.join("", "a", api_version=0).member_id == "made-by-broker"


def test_a_member_may_join_without_any_topic() -> None:
    world = World(a=1)
    assert world.join("m") == ConsumerHeartbeatResponse("m", 1, 5_000, {})
    assert world.join("n") == ConsumerHeartbeatResponse("n", 1, 5_000, {})


def test_a_member_that_joins_again_after_the_answer_was_lost_is_told_everything_again() -> None:
    world = World(a=1)
    first = world.join("m", "a")
    assert world.join("m", "a") == first


def test_a_member_that_gave_up_everything_may_join_again_at_any_epoch() -> None:
    world = World(a=2)
    world.join("m", "a")
    world.join("n", "a")
    world.settle()
    assert world.join("m", "a").assignment == world.ids(a=(0,))


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"group_id": " "}, "GroupId"),
        ({"instance_id": ""}, "InstanceId"),
        ({"rack_id": " "}, "RackId"),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs"),
        ({"rebalance_timeout_ms": -2}, "RebalanceTimeoutMs"),
        ({"owned": None}, "TopicPartitions"),
        ({"owned": {b"x" * 16: (0,)}}, "TopicPartitions"),
        ({"topics": None}, "SubscribedTopicNames"),
        ({"member_id": ""}, "MemberId"),
        ({"epoch": -3}, "MemberEpoch"),
        ({"epoch": -2}, "InstanceId"),
        ({"epoch": 5, "member_id": "", "api_version": 0}, "MemberId"),
        ({"epoch": -1, "member_id": "", "api_version": 0}, "MemberId"),
    ],
)
def test_requests_that_contradict_themselves_are_refused(fields: dict[str, Any], word: str) -> None:
    world = World(a=1)
    request: dict[str, Any] = {"member_id": "m", "epoch": 0, "topics": ("a",), "owned": {}, "rebalance_timeout_ms": 1}
    with pytest.raises(InvalidRequest, match=word):
        world.beat(**{**request, **fields})
    assert not world.log


def test_an_assignor_that_the_broker_does_not_have_is_refused() -> None:
    with pytest.raises(UnsupportedAssignor, match="uniform, range"):
        World(a=1).join("m", "a", assignor="cooperative-sticky")


def test_a_full_group_takes_only_its_own_members_and_those_who_take_their_place() -> None:
    world = World(GroupSettings(consumer_max_size=1), a=1)
    world.join("m", "a", instance_id="i")
    with pytest.raises(GroupMaxSizeReached, match="1"):
        world.join("n", "a")
    world.beat("m", 1, instance_id="i", owned=world.assigned("m"))
    world.beat("m", -2, instance_id="i")
    assert world.join("n", "a", instance_id="i").assignment == world.ids(a=(0,))


# Heartbeats


def test_a_heartbeat_without_news_writes_nothing_and_tells_no_assignment() -> None:
    world = World(a=1)
    world.join("m", "a")
    assert world.beat("m", 1) == (ConsumerHeartbeatResponse("m", 1, 5_000, None), [])


def test_a_full_heartbeat_is_told_the_assignment_again() -> None:
    world = World(a=1)
    world.join("m", "a")
    response, records = world.beat("m", 1, topics=("a",), owned=world.ids(a=(0,)), rebalance_timeout_ms=60_000)
    assert (response.assignment, records) == (world.ids(a=(0,)), [])


@pytest.mark.parametrize("left_out", ["topics", "owned", "rebalance_timeout_ms"])
def test_a_heartbeat_that_leaves_out_anything_is_not_full(left_out: str) -> None:
    world = World(a=1)
    world.join("m", "a")
    fields: dict[str, Any] = {"topics": ("a",), "owned": world.ids(a=(0,)), "rebalance_timeout_ms": 60_000}
    del fields[left_out]
    assert world.beat("m", 1, **fields)[0].assignment is None


def test_fields_that_are_left_out_stay_as_they_were() -> None:
    world = World(a=1)
    world.join("m", "a", rack_id="r", assignor="range")
    _, records = world.beat("m", 1, client=Client("renamed", "/127.0.0.2"))
    subscription = ConsumerMemberValue(None, "r", "renamed", "/127.0.0.2", ("a",), None, 60_000, "range")
    assert records == [GroupRecord(ConsumerMemberKey(GROUP, "m"), subscription)]


def test_unknown_members_are_told_so() -> None:
    world = World(a=1)
    world.join("m", "a")
    with pytest.raises(UnknownMemberId):
        world.beat("n", 1)
    with pytest.raises(UnknownMemberId):
        world.beat("n", -1)
    with pytest.raises(UnknownMemberId, match="'i'"):
        world.beat("m", 1, instance_id="i")


def test_an_epoch_ahead_or_far_behind_is_fenced() -> None:
    world = World(a=2)
    world.join("m", "a")
    world.join("n", "a")
    world.settle()
    world.make_topic("b", 1)
    world.beat("m", 2, topics=("a", "b"), owned=world.assigned("m"))
    assert world.epoch("m") == 3
    for epoch in (1, 4):
        with pytest.raises(FencedMemberEpoch, match="at epoch 3"):
            world.beat("m", epoch, owned={})


def test_the_previous_epoch_with_nothing_foreign_is_a_lost_answer() -> None:
    world = World(a=2)
    world.join("m", "a")
    before = world.log[:]
    assert world.beat("m", 0, topics=("a",), owned={}, rebalance_timeout_ms=60_000)[1] == []
    world.beat("m", 1, topics=("a", "b"), owned=world.ids(a=(0, 1)))
    assert world.epoch("m") == 2
    assert world.log != before
    assert world.beat("m", 1, owned=world.ids(a=(1,)))[0].member_epoch == 2
    with pytest.raises(FencedMemberEpoch):
        world.beat("m", 1, owned={**world.ids(a=(0,)), b"other".ljust(16): (0,)})
    with pytest.raises(FencedMemberEpoch):
        world.beat("m", 1)


# Rebalancing


def test_nothing_is_assigned_before_it_was_revoked_elsewhere() -> None:
    world = World(a=2)
    world.join("m", "a")
    response = world.join("n", "a")
    assert response == ConsumerHeartbeatResponse("n", 2, 5_000, {})
    assert world.group.state.members["n"].current_assignment.state == UNRELEASED
    assert world.group.state.name == "Reconciling"

    told = world.beat("m", 1, owned=world.ids(a=(0, 1)))[0]
    assert told == ConsumerHeartbeatResponse("m", 1, 5_000, world.ids(a=(0,)))
    assert world.group.state.members["m"].current_assignment == CurrentAssignmentValue(
        1, 1, UNREVOKED, world.ids(a=(0,)), world.ids(a=(1,))
    )
    assert world.beat("n", 2, owned={})[0].assignment is None
    assert world.beat("m", 1)[0].member_epoch == 1, "it did not say that it gave anything up"

    assert world.beat("m", 1, owned=world.ids(a=(0,)))[0].member_epoch == 2
    assert world.beat("n", 2)[0].assignment == world.ids(a=(1,))
    assert world.group.state.name == "Stable"


def test_a_member_that_already_gave_up_what_it_must_moves_on_at_once() -> None:
    world = World(a=2)
    world.join("m", "a")
    world.join("n", "a")
    response = world.beat("m", 1, owned=world.ids(a=(0,)))[0]
    assert response == ConsumerHeartbeatResponse("m", 2, 5_000, world.ids(a=(0,)))


def test_only_targets_that_changed_are_written() -> None:
    world = World(a=2, b=1)
    world.join("m", "a")
    world.settle()
    _, records = world.beat("n", 0, topics=("b",), owned={}, rebalance_timeout_ms=1)
    assert [record.key for record in records if isinstance(record.key, TargetAssignmentKey)] == [
        TargetAssignmentKey(GROUP, "n")
    ]


def test_a_changed_subscription_bumps_the_epoch_and_an_equal_one_does_not() -> None:
    world = World(a=1, b=1)
    world.join("m", "a")
    assert world.beat("m", 1, topics=("a", "a"))[1] == []
    response, _ = world.beat("m", 1, topics=("b",), owned=world.ids(a=(0,)))
    assert (response.member_epoch, response.assignment) == (1, {})
    response, _ = world.beat("m", 1, owned={})
    assert (response.member_epoch, response.assignment) == (2, world.ids(b=(0,)))


def test_another_assignor_alone_does_not_rebalance() -> None:
    world = World(a=1)
    world.join("m", "a")
    assert kinds(world.beat("m", 1, assignor="range")[1]) == ["ConsumerMemberKey"]


def test_the_assignor_that_most_members_ask_for_is_used() -> None:
    world = World(a=4)
    world.join("m", "a", assignor="uniform")
    world.join("n", "a", assignor="range")
    assert world.group.describe(world.context).assignor == "uniform"
    world.join("o", "a", assignor="range")
    assert world.group.describe(world.context).assignor == "range"
    world.settle()
    assert world.assigned("m") == world.ids(a=(0, 1, 2, 3))


def test_new_deleted_and_growing_topics_rebalance_at_the_next_heartbeat() -> None:
    world = World(a=1)
    world.join("m", "a", "b")
    world.make_topic("b", 2)
    assert world.beat("m", 1)[0] == ConsumerHeartbeatResponse("m", 2, 5_000, world.ids(a=(0,), b=(0, 1)))
    world.grow_topic("a", 2)
    assert world.beat("m", 2)[0] == ConsumerHeartbeatResponse("m", 3, 5_000, world.ids(a=(0, 1), b=(0, 1)))
    gone = world.ids(b=(0, 1))
    world.delete_topic("b")
    assert world.beat("m", 3)[0] == ConsumerHeartbeatResponse("m", 3, 5_000, world.ids(a=(0, 1)))
    assert world.beat("m", 3, owned={**world.ids(a=(0, 1)), **gone})[0].member_epoch == 3
    assert world.beat("m", 3, owned=world.ids(a=(0, 1)))[0].member_epoch == 4


def test_a_topic_that_was_deleted_and_made_again_is_another() -> None:
    world = World(a=1)
    world.join("m", "a")
    world.delete_topic("a")
    world.make_topic("a", 1)
    world.beat("m", 1)
    assert world.beat("m", 1, owned={})[0].assignment == world.ids(a=(0,))


def test_topics_that_nobody_subscribes_to_do_not_matter() -> None:
    world = World(a=1)
    world.join("m", "a")
    world.make_topic("z", 1)
    assert world.beat("m", 1) == (ConsumerHeartbeatResponse("m", 1, 5_000, None), [])


# Leaving


def test_a_member_that_leaves_is_removed_in_reverse_order_and_the_epoch_grows() -> None:
    world = World(a=2)
    world.join("m", "a")
    world.join("n", "a")
    world.settle()
    response, records = world.beat("m", -1)
    assert response == ConsumerHeartbeatResponse("m", -1, 0, None)
    assert kinds(records) == [
        "-CurrentAssignmentKey",
        "-TargetAssignmentKey",
        "-ConsumerMemberKey",
        "ConsumerGroupKey",
    ]
    assert world.group.state.name == "Assigning"
    assert {name for name in world.timers if "m" in name[1:]} == set()
    assert world.beat("n", 2)[0] == ConsumerHeartbeatResponse("n", 3, 5_000, world.ids(a=(0, 1)))


def test_a_group_without_members_is_empty_and_goes_on_from_its_epoch() -> None:
    world = World(a=1)
    world.join("m", "a")
    world.beat("m", -1)
    assert world.group.state.name == "Empty"
    assert world.join("n", "a").member_epoch == 3


# Static members


def test_a_static_member_leaves_for_a_moment_and_its_successor_gets_the_same() -> None:
    world = World(a=2)
    world.join("m", "a", instance_id="i")
    world.join("n", "a")
    world.settle()
    response, records = world.beat("m", -2, instance_id="i")
    assert response == ConsumerHeartbeatResponse("m", -2, 0, None)
    assert kinds(records) == ["CurrentAssignmentKey"]
    assert records == [
        GroupRecord(CurrentAssignmentKey(GROUP, "m"), CurrentAssignmentValue(-2, 1, STABLE, world.ids(a=(0,)), {}))
    ]
    response, records = world.beat("m2", 0, topics=("a",), owned={}, instance_id="i", rebalance_timeout_ms=60_000)
    assert response == ConsumerHeartbeatResponse("m2", 2, 5_000, world.ids(a=(0,)))
    assert kinds(records) == [
        "-CurrentAssignmentKey",
        "-TargetAssignmentKey",
        "-ConsumerMemberKey",
        "ConsumerMemberKey",
        "TargetAssignmentKey",
        "CurrentAssignmentKey",
        "CurrentAssignmentKey",
    ]
    assert (world.group.state.name, world.group.state.epoch) == ("Stable", 2)
    assert (GROUP, "session", "m") not in world.timers


def test_a_successor_with_another_subscription_rebalances() -> None:
    world = World(a=1, b=1)
    world.join("m", "a", instance_id="i")
    world.beat("m", -2, instance_id="i")
    assert world.join("m2", "b", instance_id="i") == ConsumerHeartbeatResponse("m2", 2, 5_000, world.ids(b=(0,)))
    assert set(world.group.state.members) == {"m2"}


def test_a_static_member_may_come_back_under_its_own_id() -> None:
    world = World(a=1)
    world.join("m", "a", instance_id="i")
    world.beat("m", -2, instance_id="i")
    assert world.join("m", "a", instance_id="i") == ConsumerHeartbeatResponse("m", 1, 5_000, world.ids(a=(0,)))


def test_an_instance_id_in_use_is_not_given_away() -> None:
    world = World(a=1)
    world.join("m", "a", instance_id="i")
    with pytest.raises(UnreleasedInstanceId, match="in use by m"):
        world.join("n", "a", instance_id="i")
    assert world.join("m", "a", instance_id="i").member_epoch == 1, "the member itself may join again"


def test_whoever_lost_its_instance_id_is_fenced() -> None:
    world = World(a=1)
    world.join("m", "a", instance_id="i")
    world.beat("m", -2, instance_id="i")
    with pytest.raises(FencedMemberEpoch):
        world.beat("m", 1, instance_id="i")
    world.join("m2", "a", instance_id="i")
    for epoch in (1, -1, -2):
        with pytest.raises(FencedInstanceId, match="m2"):
            world.beat("m", epoch, instance_id="i")


def test_a_static_member_that_does_not_come_back_in_time_is_removed() -> None:
    world = World(a=1)
    world.join("m", "a", instance_id="i")
    world.beat("m", -2, instance_id="i")
    world.pass_time(44_999)
    assert "m" in world.group.state.members
    world.pass_time(1)
    assert not world.group.state.members
    assert not world.group.state.static_members


def test_what_a_static_member_had_to_give_up_is_free_when_it_leaves_for_a_moment() -> None:
    world = World(a=2)
    world.join("m", "a", instance_id="i")
    world.join("n", "a")
    world.beat("m", 1, owned=world.ids(a=(0, 1)))
    world.beat("m", -2, instance_id="i")
    assert world.beat("n", 2)[0].assignment == world.ids(a=(1,))
    assert world.join("m2", "a", instance_id="i").assignment == world.ids(a=(0,))


# Time


def test_a_member_that_is_not_heard_of_is_fenced_when_its_session_is_over() -> None:
    world = World(a=1)
    world.join("m", "a")
    world.pass_time(44_999)
    world.beat("m", 1)
    world.pass_time(44_999)
    assert world.group.state.name == "Stable"
    world.pass_time(1)
    assert (world.group.state.name, world.group.state.epoch) == ("Empty", 2)
    assert not world.timers


def test_a_member_that_does_not_revoke_in_time_is_fenced() -> None:
    world = World(a=2)
    world.join("m", "a", rebalance_timeout_ms=20_000)
    world.join("n", "a")
    world.beat("m", 1, owned=world.ids(a=(0, 1)))
    world.pass_time(19_999)
    world.beat("m", 1)
    world.beat("n", 2)
    world.pass_time(1)
    assert set(world.group.state.members) == {"n"}
    assert world.beat("n", 2)[0].assignment == world.ids(a=(0, 1))


def test_a_member_that_revokes_in_time_is_not_fenced() -> None:
    world = World(a=2)
    world.join("m", "a", rebalance_timeout_ms=20_000)
    world.join("n", "a")
    world.beat("m", 1, owned=world.ids(a=(0, 1)))
    world.beat("m", 1, owned=world.ids(a=(0,)))
    assert {name[1] for name in world.timers} == {"session"}
    world.pass_time(20_000)
    assert set(world.group.state.members) == {"m", "n"}


def test_stale_timers_do_nothing() -> None:
    world = World(a=1)
    world.join("m", "a")
    for name in (
        (GROUP, "session", "gone"),
        (GROUP, "rebalance", "m", "1"),
        (GROUP, "rebalance", "gone", "1"),
        (GROUP, "downgraded"),
        (GROUP, "anything", "m"),
    ):
        decision = world.group.on_timer(name, world.now, world.context)
        assert (decision.records, decision.effects) == ([], [])


def test_after_loading_every_member_has_a_full_session_and_the_same_epochs() -> None:
    world = World(a=2)
    world.join("m", "a", rebalance_timeout_ms=20_000)
    world.join("n", "a")
    world.beat("m", 1, owned=world.ids(a=(0, 1)))
    world.pass_time(15_000)
    before = durable(world.group)
    world.load()
    assert durable(world.group) == before
    now_ms = world.now_ms
    assert world.timers == {
        (GROUP, "session", "m"): now_ms + 45_000,
        (GROUP, "session", "n"): now_ms + 45_000,
        (GROUP, "rebalance", "m", "1"): now_ms + 20_000,
    }
    assert world.beat("m", 1)[1] == []


# Replay


def test_records_of_different_keys_replay_in_any_order() -> None:
    world = World(a=2)
    world.join("m", "a")
    world.join("n", "a", instance_id="i")
    world.settle()
    last = {(type(record.key), record.key): record for record in world.log}
    for records in (last.values(), reversed(last.values())):
        fresh = ConsumerGroup(GROUP)
        for record in records:
            fresh.replay(record)
        assert durable(fresh) == durable(world.group)


def test_tombstones_of_what_is_not_there_are_ignored() -> None:
    group = ConsumerGroup(GROUP)
    before = durable(ConsumerGroup(GROUP))
    keys = (ConsumerMemberKey(GROUP, "m"), CurrentAssignmentKey(GROUP, "m"), TargetAssignmentKey(GROUP, "m"))
    for key in (*keys, TargetEpochKey(GROUP), ConsumerGroupKey(GROUP), PartitionMetadataKey(GROUP)):
        group.replay(GroupRecord(key, None))
    assert durable(group) == before


def test_partition_metadata_that_an_earlier_version_wrote_is_removed_with_the_next_epoch() -> None:
    world = World(a=1)
    world.join("m", "a")
    world.carry_out(GroupDecision([GroupRecord(PartitionMetadataKey(GROUP), PartitionMetadataValue())]))
    world.make_topic("b", 1)
    assert "-PartitionMetadataKey" in kinds(world.beat("m", 1, topics=("a", "b"))[1])
    assert "-PartitionMetadataKey" not in kinds(world.beat("m", 2, topics=("a",))[1])


def test_a_member_in_a_state_of_a_later_version_has_to_join_again() -> None:
    world = World(a=1)
    world.join("m", "a")
    strange = CurrentAssignmentValue(1, 1, 99, world.ids(a=(0,)), {})
    world.carry_out(GroupDecision([GroupRecord(CurrentAssignmentKey(GROUP, "m"), strange)]))
    with pytest.raises(FencedMemberEpoch, match="unknown state"):
        world.beat("m", 1, owned=world.ids(a=(0,)))
    assert world.join("m", "a") == ConsumerHeartbeatResponse("m", 1, 5_000, world.ids(a=(0,)))


# Looking, offsets, deletion


def test_a_group_describes_its_members_with_what_they_have_and_shall_have() -> None:
    world = World(a=2)
    world.join("m", "a", rack_id="r", instance_id="i")
    world.join("n", "a")
    described = world.group.describe(world.context)
    assert described[:5] == (GROUP, "Reconciling", 2, 2, "uniform")
    assert described.members[0] == (
        "m",
        "i",
        "r",
        1,
        "client",
        "/127.0.0.1",
        ("a",),
        None,
        world.ids(a=(0, 1)),
        world.ids(a=(0,)),
        1,
    )
    assert world.group.listing() == GroupListing(GROUP, "consumer", "Reconciling", "consumer", 2)
    world.delete_topic("a")
    assert world.group.describe(world.context).members[0].assigned == {}


def test_only_members_at_their_epoch_may_commit() -> None:
    world = World(a=1)
    world.group.check_commit("", -1, False, 2)
    world.join("m", "a")
    world.group.check_commit("m", 1, False, 9)
    world.group.check_commit("m", 1, True, 3)
    with pytest.raises(StaleMemberEpoch, match="at epoch 1"):
        world.group.check_commit("m", 0, False, 9)
    with pytest.raises(UnsupportedVersion, match="9"):
        world.group.check_commit("m", 1, False, 8)
    with pytest.raises(UnknownMemberId):
        world.group.check_commit("n", 1, False, 9)
    with pytest.raises(UnknownMemberId):
        world.group.check_commit("", -1, False, 9)
    world.beat("m", -1)
    world.group.check_commit("", -1, False, 2)


def test_whoever_says_that_it_is_a_member_must_be_one_to_fetch() -> None:
    world = World(a=1)
    world.join("m", "a")
    world.group.check_fetch(None, -1)
    world.group.check_fetch("m", 1)
    with pytest.raises(StaleMemberEpoch):
        world.group.check_fetch("m", 2)
    with pytest.raises(UnknownMemberId):
        world.group.check_fetch("n", 1)


def test_a_group_is_subscribed_to_what_any_member_wants() -> None:
    world = World(a=1)
    world.join("m", "a")
    world.join("n", "b")
    assert [name for name in "abc" if world.group.is_subscribed_to(name)] == ["a", "b"]
    world.beat("n", -1)
    assert not world.group.is_subscribed_to("b")


def test_only_an_empty_group_may_be_deleted() -> None:
    world = World(a=1)
    world.join("m", "a")
    with pytest.raises(NonEmptyGroup):
        world.group.check_delete()
    world.beat("m", -1)
    world.group.check_delete()
    assert kinds(world.group.tombstones()) == ["-TargetEpochKey", "-ConsumerGroupKey"]


def test_the_tombstones_of_a_group_leave_nothing() -> None:
    world = World(a=1)
    world.join("m", "a", instance_id="i", regex="a")
    world.resolve()
    world.group.replay(GroupRecord(PartitionMetadataKey(GROUP), PartitionMetadataValue()))
    tombstones = world.group.tombstones()
    assert kinds(tombstones) == [
        "-CurrentAssignmentKey",
        "-TargetAssignmentKey",
        "-TargetEpochKey",
        "-ConsumerMemberKey",
        "-RegexKey",
        "-PartitionMetadataKey",
        "-ConsumerGroupKey",
    ]
    for record in tombstones:
        world.group.replay(record)
    assert durable(world.group) == durable(ConsumerGroup(GROUP))
