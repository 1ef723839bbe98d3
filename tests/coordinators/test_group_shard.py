"""The groups of one shard: who is sent where, commits, deletion, expiry, and groups that change their protocol."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.coordinators import group_shard, offsets
from lamina.coordinators.decision import Decision, Producer
from lamina.coordinators.group_requests import JoinResponse
from lamina.coordinators.group_shard import DELETE_GONE
from lamina.coordinators.records.group_records import GroupRecord, OffsetKey, OffsetValue
from lamina.errors import (
    FencedInstanceId,
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
    KafkaError,
    NonEmptyGroup,
    OffsetMetadataTooLarge,
    RebalanceInProgress,
    StaleMemberEpoch,
    UnknownMemberId,
    UnsupportedVersion,
)
from tests.coordinators.shard_world import GROUP, ShardWorld, Waiting
from tests.examples import examples

DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
def world() -> ShardWorld:
    made = ShardWorld()
    made.topic("t")
    made.topic("u")
    return made


# Who is sent where


def test_a_group_must_have_a_name(world: ShardWorld) -> None:
    for ask in (
        lambda: world.join("", "t", group=""),
        lambda: world.heartbeat("m", 1, group=""),
        lambda: world.delete_offsets(("t", 0), group=""),
    ):
        with pytest.raises(InvalidGroupId):
            ask()


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001, -1])
def test_a_session_must_be_as_long_as_the_broker_allows(world: ShardWorld, session_ms: int) -> None:
    with pytest.raises(InvalidSessionTimeout):
        world.join("", "t", session_ms=session_ms)
    assert not world.listed()


def test_nobody_is_a_member_of_a_group_that_is_not_there(world: ShardWorld) -> None:
    with pytest.raises(UnknownMemberId):
        world.join("m", "t")
    with pytest.raises(UnknownMemberId):
        world.sync(JoinResponse("m", 1))
    with pytest.raises(UnknownMemberId):
        world.heartbeat("m", 1)
    ((_, error),) = world.leave("m").members
    assert isinstance(error, UnknownMemberId)
    with pytest.raises(GroupIdNotFound):
        world.consumer("m", 3)
    with pytest.raises(GroupIdNotFound):
        world.shard.describe(GROUP)
    with pytest.raises(GroupIdNotFound):
        world.shard.describe_consumers(GROUP)
    assert not world.listed()


def test_a_join_that_is_refused_leaves_no_group_behind(world: ShardWorld) -> None:
    with pytest.raises(InconsistentGroupProtocol):
        world.join("", "t", protocols=())
    assert not world.listed()


def test_a_classic_group_lives_and_is_described(world: ShardWorld) -> None:
    world.stable("t", assigned={"t": (0, 1)})
    described = world.shard.describe(GROUP)
    assert (described.state, described.protocol_type, described.protocol) == ("Stable", "consumer", "range")
    assert [member.member_id for member in described.members] == ["m"]
    assert world.listed() == {GROUP: ("classic", "Stable")}
    with pytest.raises(GroupIdNotFound):
        world.shard.describe_consumers(GROUP)


def test_a_consumer_group_lives_and_is_described(world: ShardWorld) -> None:
    joined = world.consumer("m", 0, "t")
    assert joined.assignment is not None
    assert [len(some) for some in joined.assignment.values()] == [4]
    described = world.shard.describe_consumers(GROUP)
    assert (described.state, described.epoch) == ("Stable", joined.member_epoch)
    assert world.listed() == {GROUP: ("consumer", "Stable")}
    with pytest.raises(GroupIdNotFound):
        world.shard.describe(GROUP)


@pytest.mark.parametrize("kind", ["classic", "consumer"])
def test_after_a_restart_a_stable_group_is_as_it_was_and_every_member_has_a_full_session(
    world: ShardWorld, kind: str
) -> None:
    if kind == "classic":
        generation = world.stable("t").generation
        session_ms = 10_000
    else:
        generation = world.consumer("m", 0, "t").member_epoch
        session_ms = 45_000
    world.pass_ms(session_ms - 1)
    world.restart()
    world.pass_ms(session_ms - 1)
    assert world.listed() == {GROUP: (kind, "Stable")}
    if kind == "classic":
        assert world.heartbeat("m", generation) is None
    else:
        assert world.consumer("m", generation).member_epoch == generation
    world.pass_ms(session_ms)
    assert world.listed() == {GROUP: (kind, "Empty")}


# Commits


def test_anybody_commits_for_a_group_without_members(world: ShardWorld) -> None:
    assert world.commit(5) is None
    assert world.fetch(("t", 0), ("t", 1)) == [5, -1]
    assert world.listed() == {GROUP: ("classic", "Empty")}
    assert world.shard.describe(GROUP).protocol_type == ""


@pytest.mark.parametrize(("version", "error"), [(8, IllegalGeneration), (9, GroupIdNotFound)])
def test_a_member_of_a_group_that_is_not_there_is_told_as_its_version_can(
    world: ShardWorld, version: int, error: type[KafkaError]
) -> None:
    with pytest.raises(error):
        world.commit(member="m", generation=3, version=version)
    assert not world.listed()


def test_commits_of_classic_members_are_checked(world: ShardWorld) -> None:
    joined = world.stable("t")
    assert world.commit(1, member="m", generation=joined.generation) is None
    cases: list[tuple[dict[str, Any], type[KafkaError]]] = [
        ({"member": "m", "generation": joined.generation + 1}, IllegalGeneration),
        ({"member": "m", "generation": -1}, IllegalGeneration),
        ({"member": "other", "generation": joined.generation}, UnknownMemberId),
        ({}, UnknownMemberId),
        ({"member": "m", "generation": joined.generation, "instance": "i"}, UnknownMemberId),
    ]
    for how, error in cases:
        with pytest.raises(error):
            world.commit(9, **how)
    assert world.fetch(("t", 0)) == [1]


def test_a_static_member_that_was_replaced_is_fenced(world: ShardWorld) -> None:
    joined = world.stable("t", instance="i", new_id="old")
    again = world.join("", "t", instance="i", new_id="new")
    assert again.generation == joined.generation
    with pytest.raises(FencedInstanceId):
        world.commit(9, member="old", generation=joined.generation, instance="i")
    assert world.commit(9, member="new", generation=joined.generation, instance="i") is None


def test_a_generation_that_is_not_assigned_yet_cannot_commit(world: ShardWorld) -> None:
    joined = world.join("", "t")
    assert world.shard.describe(GROUP).state == "CompletingRebalance"
    with pytest.raises(RebalanceInProgress):
        world.commit(member="m", generation=joined.generation)


def test_while_others_join_the_old_generation_may_still_commit(world: ShardWorld) -> None:
    joined = world.stable("t")
    assert isinstance(world.join("", "t", new_id="n"), Waiting)
    assert world.shard.describe(GROUP).state == "PreparingRebalance"
    assert world.commit(3, member="m", generation=joined.generation) is None


def test_a_commit_keeps_a_classic_member_alive(world: ShardWorld) -> None:
    joined = world.stable("t")
    world.pass_ms(9_000)
    world.commit(member="m", generation=joined.generation)
    world.pass_ms(9_000)
    assert world.listed() == {GROUP: ("classic", "Stable")}


def test_a_note_that_is_too_long_is_refused(world: ShardWorld) -> None:
    assert isinstance(world.commit(metadata="x" * 4097), OffsetMetadataTooLarge)
    assert world.commit(metadata="x" * 4096) is None
    assert world.commit(metadata=None) is None


def test_commits_of_consumer_members_are_checked(world: ShardWorld) -> None:
    epoch = world.consumer("m", 0, "t").member_epoch
    assert world.commit(1, member="m", generation=epoch) is None
    cases: list[tuple[dict[str, Any], type[KafkaError]]] = [
        ({"member": "m", "generation": epoch + 1}, StaleMemberEpoch),
        ({"member": "m", "generation": epoch - 1}, StaleMemberEpoch),
        ({"member": "other", "generation": epoch}, UnknownMemberId),
        ({}, UnknownMemberId),
        ({"member": "m", "generation": epoch, "version": 8}, UnsupportedVersion),
    ]
    for how, error in cases:
        with pytest.raises(error):
            world.commit(9, **how)
    world.consumer("m", -1)
    assert world.commit(2) is None, "an empty group takes it from anybody"


def test_fetches_of_consumer_members_are_checked(world: ShardWorld) -> None:
    epoch = world.consumer("m", 0, "t").member_epoch
    world.commit(4, member="m", generation=epoch)
    assert world.fetch(("t", 0), member="m", epoch=epoch) == [4]
    assert world.fetch(("t", 0)) == [4], "whoever does not say to be a member"
    with pytest.raises(StaleMemberEpoch):
        world.fetch(("t", 0), member="m", epoch=epoch + 1)
    with pytest.raises(UnknownMemberId):
        world.fetch(("t", 0), member="n", epoch=epoch)


def test_a_group_that_is_not_there_has_no_offsets_and_no_error(world: ShardWorld) -> None:
    assert world.fetch(("t", 0), ("u", 3)) == [-1, -1]
    assert world.fetch() == []
    assert world.fetch(("t", 0), member="m", epoch=3) == [-1]


def test_offsets_of_a_transaction_make_a_group_before_they_count(world: ShardWorld) -> None:
    pending = GroupRecord(OffsetKey(GROUP, "t", 0), OffsetValue(8, -1, "", 1))
    world.carry_out(Decision([pending], producer=Producer(40, 0)))
    assert world.listed() == {GROUP: ("classic", "Empty")}
    assert world.fetch(("t", 0)) == [-1]
    world.restart()
    world.end_transaction(40, is_committed=True)
    assert world.fetch(("t", 0)) == [8]


# Deleting offsets and groups


def test_offsets_of_topics_that_are_read_cannot_be_deleted(world: ShardWorld) -> None:
    world.commit(1)
    world.commit(2, topic="u")
    world.stable("t")
    errors = world.delete_offsets(("t", 0), ("u", 0), ("u", 9))
    assert [type(error) for error in errors] == [GroupSubscribedToTopic, type(None), type(None)]
    assert world.fetch(("t", 0), ("u", 0)) == [1, -1]


def test_so_it_is_in_consumer_groups(world: ShardWorld) -> None:
    epoch = world.consumer("m", 0, "t").member_epoch
    world.commit(1, member="m", generation=epoch)
    world.commit(2, member="m", generation=epoch, topic="u")
    errors = world.delete_offsets(("t", 0), ("u", 0))
    assert [type(error) for error in errors] == [GroupSubscribedToTopic, type(None)]
    assert world.fetch(("t", 0), ("u", 0)) == [1, -1]


def test_offsets_of_groups_whose_members_are_no_consumers_are_deleted_only_when_they_are_gone(
    world: ShardWorld,
) -> None:
    world.commit(1)
    world.stable("t", protocol_type="connect")
    with pytest.raises(NonEmptyGroup):
        world.delete_offsets(("t", 0))
    world.leave("m")
    assert world.delete_offsets(("t", 0)) == [None]
    assert world.fetch(("t", 0)) == [-1]


def test_a_group_that_is_not_there_cannot_be_deleted(world: ShardWorld) -> None:
    with pytest.raises(GroupIdNotFound):
        world.delete()
    with pytest.raises(GroupIdNotFound):
        world.delete_offsets(("t", 0))


def test_a_group_with_members_cannot_be_deleted_and_one_without_goes_with_its_offsets(world: ShardWorld) -> None:
    joined = world.stable("t")
    world.commit(1, member="m", generation=joined.generation)
    with pytest.raises(NonEmptyGroup):
        world.delete()
    world.leave("m")
    world.delete()
    assert not world.listed()
    assert world.fetch(("t", 0)) == [-1]


def test_a_consumer_group_is_deleted_likewise(world: ShardWorld) -> None:
    epoch = world.consumer("m", 0, "t").member_epoch
    world.commit(1, member="m", generation=epoch)
    with pytest.raises(NonEmptyGroup):
        world.delete()
    world.consumer("m", -1)
    world.delete()
    assert not world.listed()


def test_a_simple_group_is_deleted_by_its_offsets(world: ShardWorld) -> None:
    world.commit(1)
    world.delete()
    assert not world.listed()


def test_a_group_that_nobody_joined_after_all_can_be_deleted(world: ShardWorld) -> None:
    assert world.join("", "t", knows_id=False).error is not None
    world.pass_ms(60_000)
    world.delete()
    assert not world.listed()


def test_the_offsets_of_a_topic_go_with_it(world: ShardWorld) -> None:
    world.commit(1)
    world.commit(2, topic="u")
    world.commit(3, group="h")
    world.carry_out(world.shard.topics_deleted(frozenset({"t"}), world.now))
    world.pass_ms(0)
    assert world.fetch() == [2]
    assert world.listed() == {GROUP: ("classic", "Empty")}


@pytest.fixture
def many(world: ShardWorld, monkeypatch: pytest.MonkeyPatch) -> ShardWorld:
    """Five offsets, where two are as many as go in one turn."""
    for module in (offsets, group_shard):
        monkeypatch.setattr(module, "AT_A_TIME", 2)
    for partition in range(5):
        world.commit(1, partition=partition)
    return world


def test_many_offsets_of_a_deleted_topic_go_in_several_turns(many: ShardWorld) -> None:
    many.carry_out(many.shard.topics_deleted(frozenset({"t"}), many.now))
    left = []
    while DELETE_GONE in many.timers:
        del many.timers[DELETE_GONE]
        many.carry_out(many.shard.on_timer(DELETE_GONE, many.now))
        left.append(len(many.fetch()))
    assert left == [3, 1, 0]


def test_a_group_with_many_offsets_is_deleted_in_several_turns(many: ShardWorld) -> None:
    left = []
    while not many.ask(lambda waiter: many.shard.delete(GROUP, waiter)):
        left.append(len(many.fetch()))
    assert left == [3, 1]
    assert not many.listed()


def test_many_offsets_of_a_group_expire_in_several_turns_and_take_it_along(many: ShardWorld) -> None:
    many.pass_ms(8 * DAY_MS)
    left = []
    while many.listed():
        many.expire()
        left.append(len(many.fetch()))
    assert left == [3, 1, 0]


# Expiry


def test_offsets_of_a_simple_group_expire_by_their_commit_and_take_it_along(world: ShardWorld) -> None:
    world.commit(1)
    world.pass_ms(4 * DAY_MS)
    world.commit(2, partition=1)
    world.pass_ms(4 * DAY_MS)
    world.expire()
    assert world.fetch(("t", 0), ("t", 1)) == [-1, 2]
    world.pass_ms(4 * DAY_MS)
    world.expire()
    assert not world.listed()


def test_offsets_of_a_classic_group_expire_once_it_is_empty_for_long(world: ShardWorld) -> None:
    joined = world.stable("t", session_ms=1_800_000)
    world.commit(1, member="m", generation=joined.generation)
    for _ in range(8):
        for _ in range(50):
            world.pass_ms(DAY_MS // 50)
            world.heartbeat("m", joined.generation)
    world.expire()
    assert world.fetch(("t", 0)) == [1], "it is read"
    world.leave("m")
    world.pass_ms(6 * DAY_MS)
    world.expire()
    assert world.fetch(("t", 0)) == [1]
    world.pass_ms(DAY_MS)
    world.expire()
    assert not world.listed()


def test_offsets_of_topics_that_a_consumer_group_reads_stay(world: ShardWorld) -> None:
    epoch = world.consumer("m", 0, "t").member_epoch
    world.commit(1, member="m", generation=epoch)
    world.commit(2, member="m", generation=epoch, topic="u")
    for _ in range(8):
        world.now = world.now._replace(wall_ms=world.now.wall_ms + DAY_MS)
    world.expire()
    assert world.fetch(("t", 0), ("u", 0)) == [1, -1]
    world.consumer("m", -1)
    world.expire()
    assert not world.listed()


def test_a_retention_of_the_commits_own_wins(world: ShardWorld) -> None:
    world.commit(1, retention_ms=10)
    world.commit(2, partition=1)
    world.pass_ms(10)
    world.expire()
    assert world.fetch(("t", 0), ("t", 1)) == [-1, 2]


def test_an_empty_group_without_offsets_is_forgotten(world: ShardWorld) -> None:
    world.join("", "t", knows_id=False)
    world.expire()
    assert world.listed(), "somebody is about to join"
    world.pass_ms(10_001)
    world.expire()
    assert not world.listed()
    world.expire("never was")


# From one protocol to the other


def test_an_empty_classic_group_becomes_a_consumer_group_with_its_offsets(world: ShardWorld) -> None:
    joined = world.stable("t")
    world.commit(5, member="m", generation=joined.generation)
    world.leave("m")
    world.consumer("n", 0, "t")
    assert world.listed() == {GROUP: ("consumer", "Stable")}
    assert world.fetch(("t", 0)) == [5]


def test_a_simple_group_becomes_a_consumer_group(world: ShardWorld) -> None:
    world.commit(5)
    world.consumer("n", 0, "t")
    assert world.listed() == {GROUP: ("consumer", "Stable")}


def test_an_empty_consumer_group_becomes_classic_with_its_first_classic_member(world: ShardWorld) -> None:
    world.consumer("n", 0, "t")
    world.consumer("n", -1)
    joined = world.stable("t")
    assert joined.generation > 1, "generations only grow"
    assert world.listed() == {GROUP: ("classic", "Stable")}


def test_a_live_classic_group_is_upgraded_by_the_first_consumer_and_downgraded_by_the_last(world: ShardWorld) -> None:
    topic_id = world.image.topics["t"].id
    joined = world.stable("t", assigned={"t": (0, 1, 2, 3)})
    world.commit(5, member="m", generation=joined.generation)
    first = world.consumer("n", 0, "t")
    assert world.listed()[GROUP][0] == "consumer"
    assert first.member_epoch == joined.generation + 1
    assert first.assignment == {}, "nothing before it was given up elsewhere"
    with pytest.raises(RebalanceInProgress):
        world.heartbeat("m", joined.generation)
    again = world.join("m", "t")
    assert again.generation == joined.generation + 1
    assert world.sync(again).assignment
    second = world.consumer("n", first.member_epoch, owned={})
    assert second.assignment is not None
    assert len(second.assignment[topic_id]) == 2
    world.restart()
    assert world.listed()[GROUP] == ("consumer", "Stable")
    world.consumer("n", -1)
    world.pass_ms(0)
    assert world.listed() == {GROUP: ("classic", "PreparingRebalance")}
    rejoined = world.join("m", "t")
    assert rejoined.generation > again.generation
    assert world.fetch(("t", 0)) == [5]


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_a_live_classic_group_stays_classic_where_upgrades_are_not_allowed(policy: str) -> None:
    world = ShardWorld(consumer_migration_policy=policy)
    world.topic("t")
    world.stable("t")
    with pytest.raises(GroupIdNotFound):
        world.consumer("n", 0, "t")
    assert world.listed() == {GROUP: ("classic", "Stable")}


def test_a_group_of_others_than_consumers_is_not_upgraded(world: ShardWorld) -> None:
    world.stable("t", protocol_type="connect")
    with pytest.raises(GroupIdNotFound):
        world.consumer("n", 0, "t")
    assert world.listed() == {GROUP: ("classic", "Stable")}


def test_a_group_is_not_downgraded_where_that_is_not_allowed() -> None:
    world = ShardWorld(consumer_migration_policy="upgrade")
    world.topic("t")
    joined = world.stable("t", assigned={"t": (0, 1, 2, 3)})
    world.consumer("n", 0, "t")
    world.consumer("n", -1)
    world.pass_ms(0)
    assert world.listed()[GROUP][0] == "consumer"
    assert world.join("m", "t").generation > joined.generation


def test_whoever_waits_in_a_group_that_is_upgraded_is_told_to_join_again(world: ShardWorld) -> None:
    world.stable("t")
    waiting = world.join("", "t", new_id="late")
    assert isinstance(waiting, Waiting)
    world.consumer("n", 0, "t")
    with pytest.raises(RebalanceInProgress):
        _ = waiting.response


# Regular expressions


def test_topics_of_an_expression_are_found_and_new_ones_follow(world: ShardWorld) -> None:
    joined = world.consumer("m", 0, regex="t.*")
    assert joined.assignment == {}
    world.resolve()
    found = world.consumer("m", joined.member_epoch)
    assert found.assignment is not None
    assert list(found.assignment) == [world.image.topics["t"].id]
    world.topic("t2")
    world.pass_ms(10_001)
    world.consumer("m", found.member_epoch)
    world.resolve()
    more = world.consumer("m", found.member_epoch, owned=found.assignment)
    assert more.assignment is not None
    assert len(more.assignment) == 2
    world.restart()
    assert world.consumer("m", more.member_epoch, owned=more.assignment).member_epoch == more.member_epoch


def test_a_result_for_a_group_that_is_gone_changes_nothing(world: ShardWorld) -> None:
    world.consumer("m", 0, regex="t.*")
    world.consumer("m", -1)
    world.delete()
    world.resolve()
    assert not world.listed()


def test_a_timer_of_a_group_that_is_gone_changes_nothing(world: ShardWorld) -> None:
    world.carry_out(world.shard.on_timer(("gone", "session", "m"), world.now))
    assert not world.listed()


# Counting


def test_commits_and_rebalances_are_counted_but_not_when_they_are_loaded(world: ShardWorld) -> None:
    joined = world.stable("t")
    world.commit(1, member="m", generation=joined.generation)
    epoch = world.consumer("n", 0, "t", group="h").member_epoch
    world.commit(2, group="h", member="n", generation=epoch)
    assert world.counts.committed_offsets == 2
    assert world.counts.rebalances == {"classic": 1, "consumer": 1}
    world.restart()
    assert world.counts.committed_offsets == 2
    assert world.counts.rebalances == {"classic": 1, "consumer": 1}
    assert world.shard.offsets.count("g") + world.shard.offsets.count("h") == 2


# Anything, in any order

members = st.sampled_from(["m0", "m1", "m2"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("join"), members, st.booleans(), st.none() | members),
        st.tuples(st.just("rejoin"), members, st.sampled_from([("t",), ("t", "u")])),
        st.tuples(st.just("sync"), members),
        st.tuples(st.just("heartbeat"), members),
        st.tuples(st.just("leave"), members),
        st.tuples(st.just("consumer"), members, st.sampled_from([0, -1, None]), st.none() | st.just("t.*")),
        st.tuples(st.just("static consumer"), members, st.sampled_from([0, -1, -2])),
        st.tuples(st.just("commit"), members),
        st.tuples(st.just("transaction"), st.integers(1, 2), st.none() | st.booleans()),
        st.tuples(st.just("time"), st.sampled_from([0, 5_000, 60_000, 8 * DAY_MS])),
        st.tuples(st.just("expire")),
        st.tuples(st.just("resolve")),
        st.tuples(st.just("delete")),
        st.tuples(st.just("topic")),
        st.tuples(st.just("restart")),
    ),
    max_size=40,
)


class Anything:
    """Clients that do whatever they like, as far as it goes by what they were last told."""

    def __init__(self) -> None:
        self.world = ShardWorld()
        self.world.topic("t")
        self.told: dict[str, JoinResponse] = {}
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, Any] = {}
        self.waiting: dict[str, Waiting] = {}

    def take(self, step: tuple[Any, ...]) -> None:
        with suppress(KafkaError):
            getattr(self, step[0].replace(" ", "_"))(*step[1:])
        for name, waiting in list(self.waiting.items()):
            if waiting.responses:
                del self.waiting[name]
                if isinstance(waiting.responses[0], JoinResponse):
                    self.told[name] = waiting.responses[0]

    def _joined(self, name: str, response: Any) -> None:
        if isinstance(response, Waiting):
            self.waiting[name] = response
        else:
            self.told[name] = response

    def join(self, name: str, knows_id: bool, instance: str | None) -> None:
        self._joined(name, self.world.join("", "t", new_id=name, knows_id=knows_id, instance=instance))

    def rejoin(self, name: str, topics: tuple[str, ...]) -> None:
        self._joined(name, self.world.join(name, *topics))

    def sync(self, name: str) -> None:
        joined = self.told.get(name, JoinResponse(name, 1))
        everybody = [one.member_id for one in joined.members]
        self.world.sync(joined, {one: {"t": (index,)} for index, one in enumerate(everybody)})

    def heartbeat(self, name: str) -> None:
        self.world.heartbeat(name, self.told.get(name, JoinResponse(name, 1)).generation)

    def leave(self, name: str) -> None:
        self.world.leave(name)

    def consumer(self, name: str, epoch: int | None, regex: str | None) -> None:
        said = self.epochs.get(name, 1) if epoch is None else epoch
        topics = () if regex is not None or said != 0 else ("t",)
        owned = self.owned.get(name) if said > 0 else None
        response = self.world.consumer(name, said, *topics, regex=regex if said == 0 else None, owned=owned)
        self.epochs[name] = response.member_epoch
        if response.assignment is not None:
            self.owned[name] = response.assignment

    def static_consumer(self, name: str, epoch: int) -> None:
        topics = ("t",) if epoch == 0 else ()
        response = self.world.consumer(name, epoch, *topics, instance="static")
        self.epochs[name] = response.member_epoch
        self.owned[name] = response.assignment or {}

    def commit(self, name: str) -> None:
        generation = max(self.epochs.get(name, -1), self.told[name].generation if name in self.told else -1)
        self.world.commit(5, member=name if generation >= 0 else "", generation=generation)

    def transaction(self, producer_id: int, is_committed: bool | None) -> None:
        if is_committed is None:
            record = GroupRecord(OffsetKey(GROUP, "t", producer_id), OffsetValue(8, -1, "", 1))
            self.world.carry_out(Decision([record], producer=Producer(producer_id, 0)))
        else:
            self.world.end_transaction(producer_id, is_committed=is_committed)

    def time(self, duration_ms: int) -> None:
        self.world.pass_ms(duration_ms)

    def expire(self) -> None:
        self.world.expire()

    def resolve(self) -> None:
        self.world.resolve()

    def delete(self) -> None:
        self.world.delete()

    def topic(self) -> None:
        self.world.topic(f"t{len(self.world.image.topics)}")

    def restart(self) -> None:
        self.world.restart()


def _generation(world: ShardWorld) -> int:
    """Of the group as it is; -1 if there is none."""
    try:
        return world.shard.describe(GROUP).generation
    except GroupIdNotFound:
        pass
    try:
        return world.shard.describe_consumers(GROUP).epoch
    except GroupIdNotFound:
        return -1


@settings(max_examples=examples(150))
@given(steps)
def test_whatever_clients_do_the_shard_holds_and_the_log_says_the_same(history: list[tuple[Any, ...]]) -> None:
    """The world compares the shard with one that is loaded from the log after every step."""
    anything = Anything()
    world = anything.world
    generation, is_empty = -1, True
    for step in history:
        anything.take(step)
        now = _generation(world)
        # After a restart only what was stored is there, and a group that was empty may begin anew as another.
        assert now >= generation or is_empty or step[0] == "restart", step
        generation, is_empty = now, world.listed().get(GROUP, ("", "Empty"))[1] == "Empty"
