"""Reassignments among brokers: replicas come, copy and lead; those that go delete what they have, at once or later."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lamina.errors import ErrorCode
from tests.broker.cluster.conftest import NewMembers
from tests.broker.cluster.members import Members

CREATE_PARTITIONS, ALTER_REASSIGNMENTS, LIST_REASSIGNMENTS = 37, 45, 46
LOG = "00000000000000000000.log"


@pytest.fixture
def members(new_members: NewMembers) -> Members:
    """Brokers 1, 2 and 3; broker 1 is the controller."""
    members = new_members(log_segment_delete_delay_ms="0")
    for node_id in (1, 2, 3):
        members.start(node_id)
    assert members.controller().id == 1
    return members


def reassign(
    members: Members,
    replicas: Mapping[int, Sequence[int] | None],
    topic: str = "t",
    node_id: int = 1,
    *,
    may_change_factor: bool = True,
) -> list[int]:
    """Ask a broker; returns the code of each partition."""
    partitions = [{"partition_index": index, "replicas": ids} for index, ids in replicas.items()]
    response = members.ask(
        node_id,
        ALTER_REASSIGNMENTS,
        0 if may_change_factor else 1,
        topics=[{"name": topic, "partitions": partitions}],
        allow_replication_factor_change=may_change_factor,
    )
    assert response.error_code == ErrorCode.NONE
    (told,) = response.responses
    return [int(one.error_code) for one in told.partitions]


def listed(members: Members, topics: list[dict[str, Any]] | None = None, node_id: int = 1) -> dict[str, Any]:
    response = members.ask(node_id, LIST_REASSIGNMENTS, 0, topics=topics)
    return {
        f"{topic.name}-{one.partition_index}": (one.replicas, one.adding_replicas, one.removing_replicas)
        for topic in response.topics
        for one in topic.partitions
    }


def directory(members: Members, node_id: int, name: str = "t-0") -> Path:
    return members.directory / f"broker-{node_id}" / "logs" / name


def holders(members: Members, name: str = "t-0") -> set[int]:
    return {node_id for node_id in (1, 2, 3, 4) if directory(members, node_id, name).exists()}


def settle(members: Members, *replicas: int, topic: str = "t") -> None:
    def holds() -> bool:
        state = members.state(topic)
        is_there = (state.replicas, set(state.isr), set(state.made_on)) == (replicas, set(replicas), set(replicas))
        return is_there and not state.is_reassigning

    members.run_until(holds)
    members.run_until(lambda: holders(members, f"{topic}-0") == set(replicas))


def kept(members: Members, node_id: int) -> bytes:
    return (directory(members, node_id) / LOG).read_bytes()


def created(members: Members, *replicas: int, records: int = 3) -> None:
    members.create(1, "t", [list(replicas)])
    members.run_until(lambda: members.leads(replicas[0], "t"))
    if records:
        assert members.produce(replicas[0], "t", records) == ErrorCode.NONE


# From end to end


def test_a_partition_moves_to_another_broker_with_all_its_records(members: Members) -> None:
    created(members, 1)
    before = kept(members, 1)
    assert reassign(members, {0: [3]}, node_id=2) == [ErrorCode.NONE]
    settle(members, 3)
    assert kept(members, 3) == before
    copied = [members.up[node_id].parts.counters.replication for node_id in (1, 3)]
    assert [copied[0].reassignment_out_bytes, copied[1].reassignment_in_bytes] == [len(before)] * 2
    members.run_until(lambda: members.leads(3, "t"))
    assert members.produce(3, "t") == ErrorCode.NONE
    assert members.produce(1, "t") == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert members.state("t").leader_epoch == 1


def test_a_partition_grows_and_shrinks_while_its_leader_stays(members: Members) -> None:
    created(members, 1)
    assert reassign(members, {0: [1, 2, 3]}) == [0]
    settle(members, 1, 2, 3)
    assert members.state("t").leader_epoch == 0, "nobody was shut out"
    assert members.produce(1, "t", 2) == ErrorCode.NONE
    assert reassign(members, {0: [1]}) == [0]
    settle(members, 1)
    assert members.produce(1, "t", 2) == ErrorCode.NONE
    partition = members.up[1].parts.partitions.get("t", 0)
    assert partition.high_watermark == partition.log.log_end_offset == 7
    assert not partition.is_replicated


def test_all_replicas_change_at_once(members: Members) -> None:
    members.start(4)
    created(members, 1, 2)
    assert reassign(members, {0: [3, 4]}) == [0]
    settle(members, 3, 4)
    assert kept(members, 3) == kept(members, 4)
    assert members.state("t").leader == 3


def test_a_replica_that_went_comes_again(members: Members) -> None:
    created(members, 1, 2)
    for replicas in ([1], [1, 2], [2], [2, 1], [1, 2]):
        assert reassign(members, {0: replicas}) == [0]
        settle(members, *replicas)
    assert kept(members, 1) == kept(members, 2)


# Under way


def stuck(members: Members, *replicas: int, away: int = 3) -> None:
    """Reassigned to a broker that reaches nobody."""
    members.isolate(away)
    assert reassign(members, {0: list(replicas)}) == [0]


def test_what_is_under_way_is_listed_at_any_broker(members: Members) -> None:
    created(members, 1, 2)
    members.create(1, "calm", [[1], [2]])
    stuck(members, 3, 1)
    told = {"t-0": ((3, 1, 2), (3,), (2,))}
    assert listed(members) == told
    assert listed(members, node_id=2) == told
    assert (
        listed(members, [{"name": "t", "partition_indexes": [0, 7]}, {"name": "no", "partition_indexes": [0]}]) == told
    )
    assert listed(members, [{"name": "calm", "partition_indexes": [0, 1]}]) == {}
    members.heal()
    settle(members, 3, 1)
    assert listed(members) == {}


def test_a_cancelled_one_leaves_nothing_behind_r52(members: Members) -> None:
    created(members, 2)
    members.isolate(2)
    assert reassign(members, {0: [3, 2]}) == [0]
    members.run_until(lambda: 3 in members.state("t").made_on)
    assert holders(members) == {2, 3}, "it cannot reach its leader"
    assert reassign(members, {0: None}) == [0]
    assert reassign(members, {0: None}) == [ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]
    members.heal()
    settle(members, 2)
    assert members.up[3].parts.partitions.find("t", 0) is None
    members.run_until(lambda: members.leads(2, "t") and members.produce(2, "t") == ErrorCode.NONE)


def test_one_that_is_under_way_goes_on_under_the_next_controller_r95(members: Members) -> None:
    created(members, 2)
    stuck(members, 3)
    members.kill(1)
    members.heal()
    settle(members, 3)


def test_a_target_that_is_down_completes_it_when_it_comes_back_r95(members: Members) -> None:
    created(members, 1)
    stuck(members, 3, 2)
    members.kill(3)
    members.heal()
    members.run_until(lambda: set(members.state("t").isr) == {1, 2})
    assert listed(members) == {"t-0": ((3, 2, 1), (3, 2), (1,))}
    members.start(3)
    settle(members, 3, 2)


def test_another_one_replaces_the_first(members: Members) -> None:
    members.start(4)
    created(members, 1)
    stuck(members, 3)
    assert reassign(members, {0: [4]}) == [0]
    settle(members, 4)
    members.heal()
    members.run_until(lambda: "t" in members.up[3].image.topics and holders(members) == {4})


# Who was away


def test_a_broker_that_was_away_deletes_what_others_keep_now(members: Members) -> None:
    created(members, 1, 2)
    members.kill(2)
    assert reassign(members, {0: [1, 3]}) == [0]
    members.run_until(lambda: members.state("t").replicas == (1, 3))
    assert members.state("t").made_on == (1, 2, 3), "it has its directory still"
    process = members.start(2)
    settle(members, 1, 3)
    assert process.parts.unknown == []
    assert process.parts.partitions.find("t", 0) is None


def test_a_directory_whose_id_a_power_cut_has_taken_is_known_by_its_checkpoint(members: Members) -> None:
    """Nothing in it was ever flushed, and its broker is known to have made one."""
    created(members, 1, 2)
    members.kill(2)
    assert reassign(members, {0: [1, 3]}) == [0]
    members.run_until(lambda: members.state("t").replicas == (1, 3))
    (directory(members, 2) / "partition.metadata").unlink()
    assert members.start(2).parts.unknown == []
    settle(members, 1, 3)


def test_what_it_kept_goes_with_the_topic_that_is_deleted_meanwhile(members: Members) -> None:
    created(members, 1, 2)
    members.kill(2)
    assert reassign(members, {0: [1, 3]}) == [0]
    members.run_until(lambda: members.state("t").replicas == (1, 3))
    members.delete(1, "t")
    members.create(1, "t", [[1, 3]])
    assert holders(members) == {1, 2, 3}
    members.start(2)
    members.run_until(lambda: holders(members) == {1, 3})
    members.run_until(lambda: not members.up[1].member.decided.deletions)


def test_a_log_that_is_ahead_of_the_metadata_is_kept_r57(members: Members) -> None:
    """The ensemble may be an old copy, which does not know what became of the partition."""
    created(members, 1, 2)
    members.kill(2)
    assert reassign(members, {0: [1]}) == [0]
    members.run_until(lambda: members.state("t").replicas == (1,))
    (directory(members, 2) / "leader-epoch-checkpoint").write_text("0\n1\n99 0\n")
    process = members.start(2)
    assert process.parts.unknown == [str(directory(members, 2))]
    assert holders(members) == {1, 2}
    assert process.parts.partitions.find("t", 0) is None


def test_a_directory_of_another_topic_by_that_name_is_kept(members: Members) -> None:
    created(members, 1, 2)
    members.kill(2)
    assert reassign(members, {0: [1]}) == [0]
    members.run_until(lambda: members.state("t").replicas == (1,))
    (directory(members, 2) / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    assert members.start(2).parts.unknown == [str(directory(members, 2))]
    assert holders(members) == {1, 2}


def test_a_broker_that_is_back_without_its_disk_has_nothing_to_delete(members: Members) -> None:
    created(members, 1, 2)
    members.kill(2)
    assert reassign(members, {0: [1]}) == [0]
    members.run_until(lambda: members.state("t").replicas == (1,))
    directory(members, 2).rename(members.directory / "elsewhere")
    members.start(2)
    settle(members, 1)


# What waits, and what is refused


def test_a_topic_does_not_grow_meanwhile_r63(members: Members) -> None:
    created(members, 1)
    stuck(members, 3)
    grown = members.ask(2, CREATE_PARTITIONS, 3, topics=[{"name": "t", "count": 4, "assignments": None}])
    assert grown.results[0].error_code == ErrorCode.REASSIGNMENT_IN_PROGRESS
    assert reassign(members, {0: None}) == [0]
    grown = members.ask(2, CREATE_PARTITIONS, 3, topics=[{"name": "t", "count": 4, "assignments": None}])
    assert grown.results[0].error_code == ErrorCode.NONE


def test_a_topic_that_is_deleted_meanwhile_is_gone_everywhere(members: Members) -> None:
    created(members, 1, 2)
    assert reassign(members, {0: [3, 2]}) == [0]
    members.delete(1, "t")
    members.run_until(lambda: holders(members) == set() and not members.up[1].member.decided.topics)
    assert members.up[1].member.decided.deletions == {}


def test_each_partition_gets_its_own_error_r69(members: Members) -> None:
    members.create(1, "t", [[1], [1], [1], [1], [1]])
    wanted = {0: [2], 1: [9], 2: [], 3: [2, 2], 4: None, 7: [1]}
    assert reassign(members, wanted, node_id=3) == [
        ErrorCode.NONE,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    settle(members, 2)
    assert reassign(members, {0: [1]}, topic="no") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_client_may_rule_out_another_number_of_replicas_r69(members: Members) -> None:
    created(members, 1)
    assert reassign(members, {0: [1, 2]}, may_change_factor=False) == [ErrorCode.INVALID_REPLICATION_FACTOR]
    assert reassign(members, {0: [2]}, may_change_factor=False) == [0]
    settle(members, 2)


def test_a_partition_that_is_named_twice_stays_as_it_is(members: Members) -> None:
    created(members, 1)
    partitions = [{"partition_index": 0, "replicas": [2]}, {"partition_index": 0, "replicas": [3]}]
    response = members.ask(1, ALTER_REASSIGNMENTS, 1, topics=[{"name": "t", "partitions": partitions}])
    codes = [int(one.error_code) for one in response.responses[0].partitions]
    assert codes == [ErrorCode.INVALID_REQUEST] * 2
    assert members.state("t").replicas == (1,)
