"""The group APIs over the wire: every version, and Kafka's error for each wrong case."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lamina.broker.requests.authorized_operations import ALL_ON_GROUP, NOT_ASKED
from lamina.broker.requests.offset_outcomes import topic_key
from lamina.coordinators.decision import Decision
from lamina.coordinators.records.group_records import GroupRecord, OffsetKey, OffsetValue
from lamina.errors import ErrorCode
from tests.broker.in_process import InProcessBroker
from tests.broker.requests.handlers.groups_world import (
    CONSUMER_DESCRIBE,
    DELETE,
    DELETE_OFFSETS,
    DESCRIBE,
    FETCH_OFFSETS,
    FIND,
    GROUP,
    HEARTBEAT,
    JOIN,
    LEAVE,
    LIST,
    NO_TOPIC_ID,
    Groups,
)

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3"}
BY_TOPIC_ID = 10
"""OffsetCommit and OffsetFetch from this version on."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    opened = InProcessBroker(tmp_path / "data", SETTINGS)
    opened.create("t", 2)
    yield opened
    opened.close()


@pytest.fixture
def groups(broker: InProcessBroker) -> Groups:
    return Groups(broker).found()


# FindCoordinator


@pytest.mark.parametrize("version", range(7))
def test_every_version_finds_the_coordinator_and_makes_its_topic(broker: InProcessBroker, version: int) -> None:
    facts = {"key": GROUP} if version < 4 else {"coordinator_keys": ["g", "h", ""]}
    answer = broker.ask(FIND, version, key_type=0, **facts)
    found = [answer] if version < 4 else answer.coordinators
    assert {(one.error_code, one.node_id, one.host, one.port) for one in found} == {(0, 1, "broker.test", 9092)}
    if version >= 4:
        assert [one.key for one in found] == ["g", "h", ""]
    topic = broker.parts.metadata.image.topics["__consumer_offsets"]
    assert topic.is_internal
    assert len(topic.partitions) == 3
    config = broker.parts.metadata.config_of("__consumer_offsets")
    assert (config.compact, config.segment_bytes) == (True, 104_857_600)


@pytest.mark.parametrize("version", range(1, 7))
def test_keys_that_are_no_groups_are_refused(broker: InProcessBroker, version: int) -> None:
    facts = {"key": GROUP} if version < 4 else {"coordinator_keys": ["g"]}
    answer = broker.ask(FIND, version, key_type=9, **facts)
    (found,) = [answer] if version < 4 else answer.coordinators
    assert (found.error_code, found.node_id, found.port) == (ErrorCode.INVALID_REQUEST, -1, -1)
    assert "type 9" in found.error_message
    assert "__consumer_offsets" not in broker.parts.metadata.image.topics


def test_an_impossible_replication_factor_is_told_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker = InProcessBroker(tmp_path, {"offsets.topic.replication.factor": "3"})
    codes = {broker.ask(FIND, 3, key=GROUP, key_type=0).error_code for _ in range(3)}
    broker.close()
    assert codes == {ErrorCode.INVALID_REPLICATION_FACTOR}
    lines = [record.getMessage() for record in caplog.records if "offsets.topic.replication.factor=3" in record.message]
    assert len(lines) == 1


@pytest.mark.parametrize("version", [3, 6])
def test_groups_of_a_partition_that_is_offline_have_no_coordinator(groups: Groups, version: int) -> None:
    groups.commit(("t", 0, 1))
    (index,) = {
        one.log.partition.index for one in groups.broker.parts.groups.runtime if one.log.partition.high_watermark
    }
    groups.broker.parts.partitions.failed("__consumer_offsets", index, RuntimeError("a test"))
    assert groups.commit(("t", 0, 2)) == [ErrorCode.NOT_COORDINATOR]
    facts = {"key": GROUP} if version < 4 else {"coordinator_keys": [GROUP]}
    answer = groups.broker.ask(FIND, version, key_type=0, **facts)
    (found,) = [answer] if version < 4 else answer.coordinators
    assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    others = groups.broker.ask(
        FIND, 6, key_type=0, coordinator_keys=[f"h{number}" for number in range(20)]
    ).coordinators
    assert {one.error_code for one in others} == {0, ErrorCode.COORDINATOR_NOT_AVAILABLE}, "the other partitions go on"
    assert groups.broker.ask(LIST, 5).error_code == 0


def test_when_the_topic_is_deleted_its_groups_are_gone_and_a_new_one_is_made(groups: Groups) -> None:
    groups.commit(("t", 0, 1))
    waiting = groups.stable().member_id
    (deleted,) = groups.broker.ask(20, 5, topic_names=["__consumer_offsets"], timeout=1000).responses
    assert deleted.error_code == 0
    assert groups.heartbeat(waiting, 1) == ErrorCode.NOT_COORDINATOR
    groups.found()
    assert groups.broker.ask(LIST, 5).groups == ()
    assert groups.heartbeat(waiting, 1) == ErrorCode.UNKNOWN_MEMBER_ID


# Before there is a coordinator, and while it loads


def test_without_the_topic_nobody_coordinates(broker: InProcessBroker) -> None:
    groups = Groups(broker)
    assert groups.join().error_code == ErrorCode.NOT_COORDINATOR
    assert groups.heartbeat("m", 1) == ErrorCode.NOT_COORDINATOR
    assert groups.commit(("t", 0, 1)) == [ErrorCode.NOT_COORDINATOR]
    assert groups.fetch(("t", 0)).error_code == ErrorCode.NOT_COORDINATOR
    assert groups.consumer("m", 0, "t").error_code == ErrorCode.NOT_COORDINATOR
    (described,) = broker.ask(DESCRIBE, 5, groups=[GROUP]).groups
    assert described.error_code == ErrorCode.NOT_COORDINATOR
    listed = broker.ask(LIST, 5)
    assert (listed.error_code, listed.groups) == (0, ())


def test_while_it_loads_everybody_is_told_to_try_again(groups: Groups) -> None:
    for shard in groups.broker.parts.groups.runtime:
        shard.load()
    asked = groups.broker.begin(JOIN, 3, **groups.join_facts())
    listed = groups.broker.begin(LIST, 5)
    busy = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert groups.broker.finish(asked).error_code == busy
    assert groups.broker.finish(listed).error_code == busy
    groups.settle()
    assert groups.join().error_code == 0


@pytest.mark.parametrize("version", range(5))
def test_while_it_loads_a_heartbeat_is_answered_as_if_all_were_well(groups: Groups, version: int) -> None:
    """Clients know no answer by which they would wait: other errors end them, or make them join again."""
    member = groups.stable().member_id
    for shard in groups.broker.parts.groups.runtime:
        shard.load()
    facts = {"group_id": GROUP, "generation_id": 1, "member_id": member}
    asked = groups.broker.begin(HEARTBEAT, version, **facts)
    assert groups.broker.finish(asked).error_code == ErrorCode.NONE
    groups.settle()
    assert groups.heartbeat(member, 1) == ErrorCode.NONE


# The classic protocol


@pytest.mark.parametrize("version", range(10))
def test_every_version_joins(groups: Groups, version: int) -> None:
    joined = groups.join(version=version)
    if version >= 4:
        assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert joined.member_id.startswith("test-")
        assert joined.generation_id == -1
        joined = groups.join(joined.member_id, version=version)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
    assert joined.leader == joined.member_id
    assert [one.member_id for one in joined.members] == [joined.member_id]
    if version >= 7:
        assert joined.protocol_type == "consumer"
    if version >= 9:
        assert not joined.skip_assignment


@pytest.mark.parametrize("version", range(10))
def test_every_version_tells_what_forbids_to_join(groups: Groups, version: int) -> None:
    short = groups.join(version=version, session_timeout=1)
    assert short.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert short.protocol_name == (None if version >= 7 else "")
    assert groups.join(version=version, group_id="").error_code == ErrorCode.INVALID_GROUP_ID
    assert groups.join(version=version, protocols=[]).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert groups.join(version=version, protocol_type="").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert groups.join("unknown", version=version).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.join("unknown", version=version).member_id == "unknown"


def test_a_second_member_waits_for_the_first(groups: Groups) -> None:
    first = groups.stable()
    waiting = groups.broker.begin(JOIN, 3, **groups.join_facts())
    groups.broker.turn()
    assert groups.heartbeat(first.member_id, first.generation_id) == ErrorCode.REBALANCE_IN_PROGRESS
    again = groups.join(first.member_id)
    second = groups.broker.finish(waiting)
    assert {again.generation_id, second.generation_id} == {2}
    assert len(again.members) == 2
    assert second.members == ()
    assert second.leader == first.member_id


@pytest.mark.parametrize("version", range(6))
def test_every_version_syncs(groups: Groups, version: int) -> None:
    joined = groups.join()
    synced = groups.sync(joined, version=version)
    assert synced.error_code == 0
    assert synced.assignment
    if version >= 5:
        assert (synced.protocol_type, synced.protocol_name) == ("consumer", "range")
    wrong = groups.sync(joined, version=version, generation_id=9)
    assert (wrong.error_code, wrong.assignment) == (ErrorCode.ILLEGAL_GENERATION, b"")
    assert groups.sync(joined, version=version, member_id="x").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.sync(joined, version=version, group_id="").error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize(
    "how", [{"protocol_type": None}, {"protocol_name": None}, {"protocol_type": "connect"}, {"protocol_name": "x"}]
)
def test_a_sync_that_believes_in_another_protocol_is_refused(groups: Groups, how: dict[str, Any]) -> None:
    joined = groups.join()
    assert groups.sync(joined, **how).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", range(5))
def test_every_version_beats(groups: Groups, version: int) -> None:
    joined = groups.stable()
    member_id, generation = joined.member_id, joined.generation_id
    assert groups.heartbeat(member_id, generation, version) == 0
    assert groups.heartbeat(member_id, generation + 1, version) == ErrorCode.ILLEGAL_GENERATION
    assert groups.heartbeat("x", generation, version) == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.heartbeat(member_id, generation, version, group_id="h") == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.heartbeat(member_id, generation, version, group_id="") == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("version", range(6))
def test_every_version_leaves(groups: Groups, version: int) -> None:
    member_id = groups.stable().member_id

    def leave(member: str, group: str = GROUP) -> tuple[int, list[int]]:
        answer = groups.broker.ask(
            LEAVE, version, group_id=group, member_id=member, members=[{"member_id": member, "reason": "tired"}]
        )
        return answer.error_code, [one.error_code for one in getattr(answer, "members", ())]

    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert leave("x") == ((unknown, []) if version < 3 else (0, [unknown]))
    assert leave("x", "h") == ((unknown, []) if version < 3 else (0, [unknown])), "a group that is not there"
    assert leave("x", "")[0] == ErrorCode.INVALID_GROUP_ID
    assert leave(member_id) == (0, [] if version < 3 else [0])
    (described,) = groups.broker.ask(DESCRIBE, 0, groups=[GROUP]).groups
    assert described.group_state == "Empty"


def test_static_members_bounce_without_a_rebalance_and_the_old_one_is_fenced(groups: Groups) -> None:
    joined = groups.stable(version=5, group_instance_id="i")
    again = groups.join(version=5, group_instance_id="i")
    assert again.generation_id == joined.generation_id
    assert again.member_id != joined.member_id
    assert again.member_id.startswith("i-")
    fenced = groups.heartbeat(joined.member_id, joined.generation_id, group_instance_id="i")
    assert fenced == ErrorCode.FENCED_INSTANCE_ID


# Offsets


@pytest.mark.parametrize("version", range(2, 11))
def test_every_version_commits(groups: Groups, version: int) -> None:
    assert groups.commit(("t", 0, 7), ("t", 9, 1), ("none", 0, 1), ("t", 1, 8), version=version) == [
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID if version >= BY_TOPIC_ID else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        0,
    ]
    fetched = groups.fetch(("t", 0), ("t", 1))
    found = [one for topic in fetched.topics for one in topic.partitions]
    assert [(one.committed_offset, one.metadata) for one in found] == [(7, "note"), (8, "note")]
    assert found[0].committed_leader_epoch == (3 if version >= 6 else -1)


@pytest.mark.parametrize("version", range(2, 11))
def test_every_version_tells_what_forbids_a_commit(groups: Groups, version: int) -> None:
    gone = ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
    assert groups.commit(("t", 0, 1), version=version, generation=3, member="m") == [gone]
    assert groups.commit(("t", 0, 1), version=version, group_id="", generation=3, member="m") == [gone]
    long = groups.commit(("t", 0, 1), version=version, metadata="x" * 5000)
    assert long == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    joined = groups.stable()
    illegal = groups.commit(("t", 0, 1), version=version, generation=9, member=joined.member_id)
    assert illegal == [ErrorCode.ILLEGAL_GENERATION]
    assert groups.commit(("t", 0, 1), version=version, generation=1, member="x") == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert groups.commit(("t", 0, 1), version=version) == [ErrorCode.UNKNOWN_MEMBER_ID]


@pytest.mark.parametrize("version", [2, 9])
def test_offsets_may_be_kept_without_naming_a_group(groups: Groups, version: int) -> None:
    """Clients of old did so; Kafka takes the empty name for commits, fetches, descriptions and deletions."""
    assert groups.commit(("t", 0, 5), version=version, group_id="") == [0]
    fetched = groups.fetch(("t", 0), version=version, group_id="")
    assert fetched.topics[0].partitions[0].committed_offset == 5
    (described,) = groups.broker.ask(DESCRIBE, 6, groups=[""]).groups
    assert (described.error_code, described.group_state) == (0, "Empty")
    assert [one.group_id for one in groups.broker.ask(LIST, 5).groups] == [""]
    (deleted,) = groups.broker.ask(DELETE, 2, groups_names=[""]).results
    assert deleted.error_code == 0
    assert groups.broker.ask(LIST, 5).groups == ()


def test_a_commit_that_is_too_large_is_told(groups: Groups) -> None:
    groups.broker.create("many", 400)
    partitions = [("many", index, 1) for index in range(400)]
    assert set(groups.commit(*partitions, metadata="x" * 4096)) == {ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
    assert groups.commit(("t", 0, 1)) == [0]


def test_an_assignment_that_is_too_large_is_told_to_whoever_waits_and_all_join_again(groups: Groups) -> None:
    """As Kafka: UNKNOWN_SERVER_ERROR to the whole generation, then a rebalance; other groups notice nothing."""
    machines = [shard.machine for shard in groups.broker.parts.groups.runtime]
    joined = groups.join()
    huge = [{"member_id": joined.member_id, "assignment": b"x" * 2_000_000}]
    assert groups.sync(joined, assignments=huge).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert groups.heartbeat(joined.member_id, joined.generation_id) == ErrorCode.REBALANCE_IN_PROGRESS
    assert [shard.machine for shard in groups.broker.parts.groups.runtime] == machines, "nothing was loaded again"
    again = groups.join(joined.member_id)
    assert again.generation_id == joined.generation_id + 1
    assert groups.sync(again).error_code == 0
    assert groups.heartbeat(again.member_id, again.generation_id) == 0


def test_a_static_member_that_comes_back_too_large_to_be_stored_is_refused_and_the_old_one_stays(
    groups: Groups,
) -> None:
    machines = [shard.machine for shard in groups.broker.parts.groups.runtime]
    joined = groups.join("", version=9, group_instance_id="i")
    assert groups.sync(joined).error_code == 0
    huge = [{"name": "range", "metadata": b"x" * 2_000_000}]
    refused = groups.join("", version=9, group_instance_id="i", protocols=huge)
    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert [shard.machine for shard in groups.broker.parts.groups.runtime] == machines
    assert groups.heartbeat(joined.member_id, joined.generation_id, group_instance_id="i") == 0
    again = groups.join("", version=9, group_instance_id="i")
    assert (again.error_code, again.generation_id) == (0, joined.generation_id)
    fenced = groups.heartbeat(joined.member_id, joined.generation_id, group_instance_id="i")
    assert fenced == ErrorCode.FENCED_INSTANCE_ID


@pytest.mark.parametrize("version", range(1, 11))
def test_every_version_fetches_offsets(groups: Groups, version: int) -> None:
    groups.commit(("t", 1, 7))
    fetched = groups.fetch(("t", 0), ("t", 1), version=version)
    found = [one for topic in fetched.topics for one in topic.partitions]
    assert [(one.partition_index, one.committed_offset, one.metadata, one.error_code) for one in found] == [
        (0, -1, "", 0),
        (1, 7, "note", 0),
    ]
    if version >= 2:
        assert fetched.error_code == 0
        everything = groups.fetch(version=version)
        key = groups.topic_id("t") if version >= BY_TOPIC_ID else "t"
        assert [(topic_key(topic), len(topic.partitions)) for topic in everything.topics] == [(key, 1)]


def test_an_offset_of_an_id_that_no_topic_has_cannot_be_fetched(groups: Groups) -> None:
    groups.commit(("t", 0, 7))
    fetched = groups.fetch(("none", 0), ("t", 0), version=BY_TOPIC_ID)
    assert fetched.error_code == 0
    assert [
        (topic.topic_id, one.partition_index, one.committed_offset, one.metadata, one.error_code)
        for topic in fetched.topics
        for one in topic.partitions
    ] == [(groups.topic_id("t"), 0, 7, "note", 0), (NO_TOPIC_ID, 0, -1, "", ErrorCode.UNKNOWN_TOPIC_ID)]


def test_several_groups_are_fetched_at_once_each_with_its_own_error(groups: Groups) -> None:
    groups.consumer("m", 0, "t")
    asked = [
        {"group_id": GROUP, "topics": None, "member_id": "m", "member_epoch": 9},
        {"group_id": "h", "topics": [{"name": "t", "partition_indexes": [0]}], "member_epoch": -1},
    ]
    first, second = groups.broker.ask(FETCH_OFFSETS, 9, groups=asked).groups
    assert (first.group_id, first.error_code) == (GROUP, ErrorCode.STALE_MEMBER_EPOCH)
    assert (second.group_id, second.error_code) == ("h", 0)
    assert second.topics[0].partitions[0].committed_offset == -1


def test_offsets_survive_a_restart(groups: Groups) -> None:
    groups.commit(("t", 0, 7))
    joined = groups.stable()
    groups.broker.restart()
    groups.settle()
    assert groups.fetch(("t", 0)).topics[0].partitions[0].committed_offset == 7
    assert groups.heartbeat(joined.member_id, joined.generation_id) == 0


def test_old_offsets_expire_and_take_their_groups_along(groups: Groups) -> None:
    groups.commit(("t", 0, 7))
    groups.join(group_id="h")
    parts = groups.broker.parts
    groups.broker.finish(parts.loop.create_task(parts.groups.expire_offsets()))
    assert len(groups.broker.ask(LIST, 5).groups) == 2
    groups.broker.clock.wall_ms = parts.clocks.now_ms() + 8 * 24 * 60 * 60 * 1000
    groups.broker.finish(parts.loop.create_task(parts.groups.expire_offsets()))
    assert [one.group_id for one in groups.broker.ask(LIST, 5).groups] == ["h"]


def test_offsets_are_deleted(groups: Groups) -> None:
    def delete(group: str, *keys: tuple[str, int]) -> Any:
        topics = [{"name": name, "partitions": [{"partition_index": index}]} for name, index in keys]
        return groups.broker.ask(DELETE_OFFSETS, 0, group_id=group, topics=topics)

    groups.broker.create("u")
    groups.commit(("t", 0, 1), ("u", 0, 2))
    groups.stable("t")
    answer = delete(GROUP, ("t", 0), ("u", 0), ("none", 0))
    assert answer.error_code == 0
    assert [topic.partitions[0].error_code for topic in answer.topics] == [
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert delete("none", ("t", 0)).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert delete("", ("t", 0)).error_code == ErrorCode.INVALID_GROUP_ID


def test_a_topics_offsets_go_with_it(groups: Groups) -> None:
    groups.broker.create("short")
    groups.commit(("short", 0, 1), ("t", 0, 2))
    (deleted,) = groups.broker.ask(20, 5, topic_names=["short"], timeout=1000).responses
    assert deleted.error_code == 0
    assert [topic.name for topic in groups.fetch().topics] == ["t"]


# Looking


@pytest.mark.parametrize("version", range(6))
def test_every_version_lists(groups: Groups, version: int) -> None:
    groups.stable()
    groups.commit(("t", 0, 1), group_id="simple")
    groups.consumer("m", 0, "t", group_id="new")
    listed = groups.broker.ask(LIST, version)
    assert listed.error_code == 0
    assert {(one.group_id, one.protocol_type) for one in listed.groups} == {
        (GROUP, "consumer"),
        ("simple", ""),
        ("new", "consumer"),
    }
    if version >= 4:
        stable = groups.broker.ask(LIST, version, states_filter=["sTable"])
        assert {one.group_id for one in stable.groups} == {GROUP, "new"}
    if version >= 5:
        by_type = groups.broker.ask(LIST, version, types_filter=["Classic"])
        assert {(one.group_id, one.group_type, one.group_state) for one in by_type.groups} == {
            (GROUP, "classic", "Stable"),
            ("simple", "classic", "Empty"),
        }
        (new,) = groups.broker.ask(LIST, version, types_filter=["CONSUMER"]).groups
        assert (new.group_id, new.group_type) == ("new", "consumer")
        assert groups.broker.ask(LIST, version, types_filter=["share"]).groups == ()


def make_work_slow(broker: InProcessBroker) -> None:
    """A millisecond goes by whenever the broker looks at its clock."""
    now_ms = count(broker.parts.clocks.monotonic_ms())
    broker.clock.monotonic_ms = lambda: next(now_ms)


def test_many_groups_are_listed_in_more_than_one_turn(groups: Groups) -> None:
    for number in range(300):
        decision = Decision([GroupRecord(OffsetKey(f"g{number}", "t", 0), OffsetValue(1, -1, "", 1))])
        groups.broker.parts.groups.shard_of(f"g{number}").run(lambda _, decided=decision: decided)  # type: ignore[misc]
    make_work_slow(groups.broker)
    listed = groups.broker.begin(LIST, 5)
    groups.broker.turn()
    assert not listed.done(), "others had their turn"
    assert len(groups.broker.finish(listed).groups) == 300


@pytest.mark.parametrize(
    ("api_key", "version", "field"),
    [(DESCRIBE, 6, "groups"), (CONSUMER_DESCRIBE, 1, "group_ids"), (DELETE, 2, "groups_names")],
)
def test_many_groups_are_described_and_deleted_in_more_than_one_turn(
    groups: Groups, api_key: int, version: int, field: str
) -> None:
    make_work_slow(groups.broker)
    begun = groups.broker.begin(api_key, version, **{field: [f"g{number}" for number in range(300)]})
    groups.broker.turn()
    assert not begun.done(), "others had their turn"
    response = groups.broker.finish(begun)
    assert len(response.results if api_key == DELETE else response.groups) == 300


@pytest.mark.parametrize("version", range(7))
def test_every_version_describes(groups: Groups, version: int) -> None:
    joined = groups.stable()
    groups.consumer("m", 0, "t", group_id="new")
    described, gone, new = groups.broker.ask(
        DESCRIBE, version, groups=[GROUP, "none", "new"], include_authorized_operations=True
    ).groups
    assert (described.error_code, described.group_state) == (0, "Stable")
    assert (described.protocol_type, described.protocol_data) == ("consumer", "range")
    (member,) = described.members
    assert (member.member_id, member.client_id) == (joined.member_id, "test")
    assert member.member_metadata
    assert member.member_assignment
    for missing in (gone, new):
        assert missing.group_state == "Dead"
        assert missing.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)
    if version >= 3:
        assert described.authorized_operations == ALL_ON_GROUP
        assert gone.authorized_operations == (ALL_ON_GROUP if version < 6 else NOT_ASKED), (
            "unless it has an error (S57)"
        )
        (not_asked,) = groups.broker.ask(DESCRIBE, version, groups=[GROUP]).groups
        assert not_asked.authorized_operations == NOT_ASKED


@pytest.mark.parametrize("version", range(3))
def test_every_version_deletes(groups: Groups, version: int) -> None:
    joined = groups.stable()
    groups.commit(("t", 0, 1), group_id="simple")
    answer = groups.broker.ask(DELETE, version, groups_names=[GROUP, "simple", "none", ""])
    assert [(one.group_id, one.error_code) for one in answer.results] == [
        (GROUP, ErrorCode.NON_EMPTY_GROUP),
        ("simple", 0),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND),
        ("", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    groups.broker.ask(LEAVE, 0, group_id=GROUP, member_id=joined.member_id)
    (gone,) = groups.broker.ask(DELETE, version, groups_names=[GROUP]).results
    assert gone.error_code == 0
    assert groups.broker.ask(LIST, 0).groups == ()


# The consumer protocol


@pytest.mark.parametrize("version", range(2))
def test_every_version_of_the_consumer_protocol_joins_stays_and_leaves(groups: Groups, version: int) -> None:
    joined = groups.consumer("" if version == 0 else "mine", 0, "t", version=version)
    assert (joined.error_code, joined.error_message) == (0, None)
    assert joined.member_id == "mine" if version else joined.member_id
    assert joined.heartbeat_interval == timedelta(seconds=5)
    (topic,) = joined.assignment.topic_partitions
    assert topic.partitions == (0, 1)
    stays = groups.consumer(joined.member_id, joined.member_epoch, version=version)
    assert (stays.error_code, stays.member_epoch, stays.assignment) == (0, joined.member_epoch, None)
    left = groups.consumer(joined.member_id, -1, version=version)
    assert (left.error_code, left.member_epoch) == (0, -1)


def test_what_forbids_a_consumer_heartbeat_is_told_with_a_sentence(groups: Groups) -> None:
    joined = groups.consumer("m", 0, "t")
    cases: list[tuple[Any, ErrorCode]] = [
        (groups.consumer("m", joined.member_epoch + 5), ErrorCode.FENCED_MEMBER_EPOCH),
        (groups.consumer("x", 3), ErrorCode.UNKNOWN_MEMBER_ID),
        (groups.consumer("x", 3, group_id="none"), ErrorCode.GROUP_ID_NOT_FOUND),
        (groups.consumer("", 0, "t"), ErrorCode.INVALID_REQUEST),
        (groups.consumer("x", 0, "t", group_id=""), ErrorCode.INVALID_REQUEST),
        (groups.consumer("x", 0, "t", rebalance_timeout=-1), ErrorCode.INVALID_REQUEST),
        (groups.consumer("x", 0, "t", server_assignor="best"), ErrorCode.UNSUPPORTED_ASSIGNOR),
        (groups.consumer("x", 0, subscribed_topic_regex="("), ErrorCode.INVALID_REGULAR_EXPRESSION),
    ]
    for answer, code in cases:
        assert answer.error_code == code
        assert answer.error_message
        assert (answer.member_epoch, answer.assignment) == (0, None)


@pytest.mark.parametrize("version", range(2))
def test_every_version_describes_consumer_groups(groups: Groups, version: int) -> None:
    groups.consumer("m", 0, "t", rack_id="r")
    groups.commit(("t", 0, 1), group_id="simple")
    described, classic, gone = groups.broker.ask(
        CONSUMER_DESCRIBE, version, group_ids=[GROUP, "simple", "none"], include_authorized_operations=True
    ).groups
    assert (described.error_code, described.group_state, described.assignor_name) == (0, "Stable", "uniform")
    assert described.group_epoch == described.assignment_epoch
    assert described.authorized_operations == ALL_ON_GROUP
    (member,) = described.members
    assert (member.member_id, member.rack_id, member.subscribed_topic_names) == ("m", "r", ("t",))
    for assignment in (member.assignment, member.target_assignment):
        (topic,) = assignment.topic_partitions
        assert (topic.topic_name, topic.partitions) == ("t", (0, 1))
    if version >= 1:
        assert member.member_type == 1
    for missing in (classic, gone):
        assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert missing.error_message
