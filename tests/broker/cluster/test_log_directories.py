"""Brokers with two log directories: one fails, comes back empty or under another path; replicas move between them."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from lamina.errors import ErrorCode
from lamina.log.directory import LogDirectory
from tests.broker.cluster.conftest import NewMembers
from tests.broker.cluster.members import Members

FETCH, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH, ALTER_REPLICA_LOG_DIRS = 1, 2, 23, 34
ALL = (1, 2, 3)
TOPICS = ("t", "u")
LOG = "00000000000000000000.log"


def directories(members: Members, node_id: int, *names: str) -> str:
    return ",".join(str(members.directory / f"broker-{node_id}" / name) for name in names or ("one", "two"))


def start(members: Members, node_id: int, *names: str) -> None:
    members.start(node_id, log_dirs=directories(members, node_id, *names))


@pytest.fixture
def members(new_members: NewMembers) -> Members:
    """Brokers 1, 2 and 3; broker 3 leads two topics, and has each in another directory."""
    members = new_members(log_segment_delete_delay_ms="0")
    for node_id in ALL:
        start(members, node_id)
    for topic in TOPICS:
        members.create(1, topic, [[3, 1, 2]])
        members.run_until(lambda topic=topic: members.leads(3, topic))  # type: ignore[misc]
        assert members.produce(3, topic, 5) == ErrorCode.NONE
    assert len({place(members, 3, topic).path for topic in TOPICS}) == 2, "the one with the fewest partitions"
    return members


def place(members: Members, node_id: int, topic: str) -> LogDirectory:
    return members.up[node_id].parts.directories.of[topic, 0]


def elsewhere(members: Members, node_id: int, topic: str) -> LogDirectory:
    here = place(members, node_id, topic)
    return next(one for one in members.up[node_id].parts.directories if one is not here)


def in_sync(members: Members, topic: str) -> set[int]:
    return set(members.state(topic).isr)


def kept(members: Members, node_id: int, topic: str) -> bytes:
    return Path(place(members, node_id, topic).path, f"{topic}-0", LOG).read_bytes()


def fail(members: Members, topic: str) -> LogDirectory:
    """The directory in which broker 3 has a topic fails, others lead it, and every broker knows."""
    failed = place(members, 3, topic)
    failed.fail(OSError(5, "Input/output error"))
    members.run_until(lambda: in_sync(members, topic) == {1, 2} and members.state(topic).leader == 1)
    members.run_until(lambda: members.leads(1, topic))
    members.run_until(lambda: all(one.image.partition(topic, 0).leader == 1 for one in members.up.values()))
    return failed


# A directory fails


def test_a_directory_that_fails_takes_only_its_partitions_offline_and_others_lead_them(members: Members) -> None:
    fail(members, "t")
    assert members.produce(1, "t") == ErrorCode.NONE
    assert members.produce(3, "t") == ErrorCode.NOT_LEADER_OR_FOLLOWER, "as its clients are told who leads"
    assert members.state("u").leader == 3
    assert in_sync(members, "u") == {1, 2, 3}
    assert members.produce(3, "u") == ErrorCode.NONE


def test_readers_are_told_that_another_broker_leads_as_soon_as_one_does(members: Members) -> None:
    """Some clients look for it on NOT_LEADER_OR_FOLLOWER alone: told of a storage error, they would ask here on."""
    fail(members, "t")
    assert errors_of_reads(members, 3, "t") == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert errors_of_reads(members, 3, "u") == {ErrorCode.NONE}


def errors_of_reads(members: Members, node_id: int, topic: str) -> set[int]:
    """Of all requests by which consumers read."""

    def ask(api_key: int, api_version: int, **partition: int) -> Any:
        asked = {"name": topic, "topic": topic, "partitions": [partition]}
        return members.ask(node_id, api_key, api_version, topics=[asked]).topics[0].partitions[0].error_code

    fetched = {"topic": topic, "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}]}
    fetch = members.ask(node_id, FETCH, 12, topics=[fetched], session_epoch=-1, max_bytes=1000)
    return {
        fetch.responses[0].partitions[0].error_code,
        ask(LIST_OFFSETS, 7, partition_index=0, timestamp=-1),
        ask(OFFSET_FOR_LEADER_EPOCH, 4, partition=0, leader_epoch=0),
    }


@pytest.mark.parametrize("is_empty", [False, True])
def test_it_comes_back_whole_or_empty_and_is_in_sync_again(members: Members, is_empty: bool) -> None:
    failed = fail(members, "t")
    assert members.produce(1, "t") == ErrorCode.NONE
    members.stop(3)
    if is_empty:
        shutil.rmtree(failed.path)
    start(members, 3)
    members.run_until(lambda: in_sync(members, "t") == in_sync(members, "u") == {1, 2, 3})
    assert place(members, 3, "u").path != failed.path
    assert kept(members, 3, "t") == kept(members, 1, "t")


def test_it_comes_back_under_another_path_and_nothing_is_copied(members: Members) -> None:
    failed = fail(members, "t")
    members.stop(3)
    name = Path(failed.path).name
    Path(failed.path).rename(Path(failed.path).with_name("renamed"))
    start(members, 3, *("renamed" if one == name else one for one in ("one", "two")))
    members.run_until(lambda: in_sync(members, "t") == {1, 2, 3})
    assert Path(place(members, 3, "t").path).name == "renamed"
    assert members.up[3].parts.counters.replication.reassignment_in_bytes == 0
    assert kept(members, 3, "t") == kept(members, 1, "t")


def test_a_directory_that_is_missing_at_the_start_is_not_lost(members: Members) -> None:
    """Nobody can look there: it may be mounted later."""
    failed = fail(members, "t")
    members.stop(3)
    away = Path(failed.path).rename(Path(failed.path).with_name("away"))
    Path(failed.path).write_bytes(b"")
    start(members, 3)
    members.run_until(lambda: in_sync(members, "u") == {1, 2, 3})
    assert in_sync(members, "t") == {1, 2}
    assert 3 in members.state("t").made_on
    members.stop(3)
    Path(failed.path).unlink()
    away.rename(failed.path)
    start(members, 3)
    members.run_until(lambda: in_sync(members, "t") == {1, 2, 3})


# Moves


def move(members: Members, node_id: int, topic: str = "t") -> str:
    """Returns to where."""
    target = elsewhere(members, node_id, topic).path
    directory = {"path": target, "topics": [{"name": topic, "partitions": [0]}]}
    response = members.ask(node_id, ALTER_REPLICA_LOG_DIRS, 2, dirs=[directory])
    assert response.results[0].partitions[0].error_code == ErrorCode.NONE
    return target


@pytest.mark.parametrize("node_id", [3, 1], ids=["the leader", "a follower"])
def test_a_replica_moves_while_it_is_replicated_and_stays_in_sync(members: Members, node_id: int) -> None:
    before = kept(members, node_id, "t")
    target = move(members, node_id)
    assert members.produce(3, "t", 2) == ErrorCode.NONE
    members.run_until(lambda: not members.up[node_id].parts.moves.under_way)
    assert place(members, node_id, "t").path == target
    assert members.produce(3, "t", 2) == ErrorCode.NONE
    assert kept(members, node_id, "t").startswith(before)
    members.run_until(lambda: kept(members, 1, "t") == kept(members, 3, "t"))
    assert (in_sync(members, "t"), members.state("t").leader_epoch) == ({1, 2, 3}, 0)


def test_a_moved_replica_is_found_at_the_next_start(members: Members) -> None:
    target = move(members, 1)
    members.run_until(lambda: not members.up[1].parts.moves.under_way)
    members.stop(1)
    assert members.produce(3, "t", 2) == ErrorCode.NONE
    start(members, 1)
    members.run_until(lambda: in_sync(members, "t") == {1, 2, 3})
    assert place(members, 1, "t").path == target
    assert kept(members, 1, "t") == kept(members, 3, "t")
