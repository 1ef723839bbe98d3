"""Who leads after all in-sync members were gone: unclean stops, wiped disks, unclean elections."""

import shutil

import pytest

from lamina.broker.metadata.reports import OwnFacts
from lamina.errors import ErrorCode
from lamina.image.topic import NO_LEADER
from tests.broker.cluster.conftest import NewMembers
from tests.broker.cluster.members import INCREMENTAL_ALTER_CONFIGS, METADATA, Members

TOPIC, BROKER = 2, 4
SET = 0


def two_in_sync(new_members: NewMembers, **settings: str) -> Members:
    """Brokers 1 and 2 with a topic that 1 leads and 2 is in sync with, and broker 3 that has nothing of it."""
    members = new_members(**settings)
    for node_id in (1, 2, 3):
        members.start(node_id)
    members.create(1, "t", [[1, 2]])
    members.run_until(lambda: members.leads(1, "t") and members.produce(1, "t") == ErrorCode.NONE)
    return members


def kill_all(members: Members, *node_ids: int) -> None:
    """Without anybody who could notice one end before the other: as a power cut of all."""
    for node_id in node_ids:
        members.kill(node_id, session_ends=False)
    members.zookeeper.end_all_sessions()


def alter(members: Members, node_id: int, resource: int, name: str, config: str, value: str) -> int:
    configs = [{"name": config, "config_operation": SET, "value": value}]
    resources = [{"resource_type": resource, "resource_name": name, "configs": configs}]
    response = members.ask(node_id, INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
    return int(response.responses[0].error_code)


def test_after_an_unclean_stop_of_all_the_controller_waits_for_all_and_elects_the_furthest(
    new_members: NewMembers,
) -> None:
    members = two_in_sync(new_members, lamina_unclean_recovery_wait_ms="60000")
    kill_all(members, 1, 2, 3)
    members.start(3)
    members.start(1)
    members.run_for(0.2)
    assert members.state("t").leader == NO_LEADER
    assert members.state("t").isr == (1, 2)
    members.start(2)
    members.run_until(lambda: members.state("t").leader != NO_LEADER)
    assert members.state("t").isr == (1, 2), "both have all of it"
    members.run_until(lambda: members.produce(members.state("t").leader, "t") == ErrorCode.NONE)


def test_a_dead_broker_whose_session_has_not_ended_yet_is_not_taken_for_one_that_has_its_records(
    new_members: NewMembers,
) -> None:
    """After a power cut of all, sessions end one by one: one that does not report may have lost its tail."""
    members = two_in_sync(new_members, lamina_unclean_recovery_wait_ms="60000")
    for node_id in (1, 2, 3):
        members.kill(node_id, session_ends=False)
    starting = members.begin_start(3)
    members.zookeeper.leave(members.ended[1].session)
    members.run_for(1.5)
    assert (members.state("t").leader, members.state("t").isr) == (1, (1, 2)), "broker 2 has not reported"
    members.zookeeper.leave(members.ended[2].session)
    members.finish_start(starting)
    members.run_until(lambda: members.state("t").leader == NO_LEADER)
    assert members.state("t").isr == (1, 2)
    members.start(1)
    members.start(2)
    members.run_until(lambda: members.state("t").leader != NO_LEADER)
    assert members.state("t").isr == (1, 2)


def test_it_waits_no_longer_than_it_may(new_members: NewMembers) -> None:
    members = two_in_sync(new_members, lamina_unclean_recovery_wait_ms="200")
    kill_all(members, 1, 2, 3)
    members.start(3)
    members.start(2)
    members.run_until(lambda: members.leads(2, "t"))
    assert members.state("t").isr == (2,)


def test_the_next_controller_waits_as_long_and_no_longer(new_members: NewMembers) -> None:
    """What the one before waited for is not known to it, but told again by those that wait."""
    members = two_in_sync(new_members, lamina_unclean_recovery_wait_ms="1000")
    kill_all(members, 1, 2, 3)
    members.start(3)
    assert members.controller().id == 3
    members.start(2)
    assert members.state("t").leader == NO_LEADER
    members.kill(3)
    members.run_until(lambda: members.leads(2, "t"))


def test_a_clean_stop_does_not_undo_an_unclean_one_that_no_election_has_answered(new_members: NewMembers) -> None:
    """Broker 1 may lack what 2 has: it waits for 2 however often it is restarted, and with it the controller."""
    members = two_in_sync(new_members, lamina_unclean_recovery_wait_ms="60000")
    kill_all(members, 1, 2, 3)
    for _ in range(2):
        members.start(1)
        assert (members.state("t").leader, members.state("t").isr) == (NO_LEADER, (1, 2))
        members.stop(1)
    members.start(1)
    members.start(2)
    members.run_until(lambda: members.state("t").leader != NO_LEADER)
    for node_id in (1, 2):
        members.stop(node_id)
        assert members.start(node_id).parts.storage.was_clean, "it is answered"


def test_a_cleanly_stopped_member_leads_at_once(new_members: NewMembers) -> None:
    members = two_in_sync(new_members, lamina_unclean_recovery_wait_ms="60000")
    members.stop(2)
    assert members.state("t").isr == (1,)
    members.stop(1)
    members.kill(3)
    members.start(1)
    members.run_until(lambda: members.leads(1, "t"))


def test_an_older_copy_of_a_cleanly_stopped_member_does_not_lead_at_once(new_members: NewMembers) -> None:
    """KIP-966: its mark tells the epoch of an earlier run than the last one: it may lack what was committed since."""
    members = two_in_sync(new_members, lamina_unclean_recovery_wait_ms="60000")
    members.stop(2)
    directory, copy = members.directory / "broker-2", members.directory / "copy"
    shutil.copytree(directory, copy)
    members.start(2)
    members.run_until(lambda: members.state("t").isr == (1, 2))
    assert members.produce(1, "t") == ErrorCode.NONE
    kill_all(members, 1, 2, 3)
    shutil.rmtree(directory)
    copy.rename(directory)
    members.start(3)
    members.start(2)
    members.run_for(0.2)
    assert members.state("t").leader == NO_LEADER, "broker 1 may have more"
    members.start(1)
    members.run_until(lambda: members.leads(1, "t"))


def test_a_wiped_last_member_leaves_its_partition_offline(new_members: NewMembers) -> None:
    """An empty log never stands for one that had what was committed."""
    members = two_in_sync(new_members)
    members.kill(2)
    members.run_until(lambda: members.state("t").isr == (1,))
    assert members.produce(1, "t") == ErrorCode.NONE
    members.kill(1)
    shutil.rmtree(members.directory / "broker-1")
    members.start(2)
    members.start(1)
    members.run_for(0.5)
    assert members.state("t").leader == NO_LEADER
    told = members.ask(3, METADATA, 12, topics=[{"name": "t"}]).topics[0].partitions[0]
    assert (told.error_code, told.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert 1 in told.offline_replicas
    assert alter(members, 3, TOPIC, "t", "unclean.leader.election.enable", "true") == ErrorCode.NONE
    members.run_until(lambda: members.leads(2, "t"))
    # The wiped one is out of the in-sync set now: it makes its replica anew, copies, and joins.
    members.run_until(lambda: members.state("t").isr == (1, 2))


def test_a_wiped_member_whose_replicas_others_have_says_so_in_one_line(
    new_members: NewMembers, caplog: pytest.LogCaptureFixture
) -> None:
    members = two_in_sync(new_members)
    members.create(1, "u", [[1, 2]] * 5)
    members.kill(2)
    members.run_until(lambda: members.state("t").isr == (1,))
    shutil.rmtree(members.directory / "broker-2")
    caplog.clear()
    members.start(2)
    members.run_until(lambda: members.state("t").isr == (1, 2))
    told = [one.getMessage() for one in caplog.records if "no directory" in one.getMessage()]
    assert told == ["6 replicas have no directory: they are copied from their leaders"]
    assert not [one for one in caplog.records if one.levelname == "ERROR"]


def test_a_replica_counts_as_made_though_its_broker_died_before_it_could_say_so(
    new_members: NewMembers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once its directory is lost, the next start must not make an empty one in its place."""
    members = new_members()
    members.start(1)
    members.start(2)
    with monkeypatch.context() as patch:
        patch.setattr(OwnFacts, "did", lambda *_: None)
        members.create(1, "t", [[2]])
        members.run_until(lambda: members.leads(2, "t"))
        members.kill(2)
    assert members.state("t").made_on == ()
    members.start(2)
    members.run_until(lambda: members.state("t").made_on == (2,))
    members.run_until(lambda: members.leads(2, "t") and members.produce(2, "t") == ErrorCode.NONE)
    members.stop(2)
    shutil.rmtree(members.directory / "broker-2" / "logs" / "t-0")
    members.start(2)
    members.run_for(0.5)
    assert members.state("t").leader == NO_LEADER


@pytest.mark.parametrize("resource", [(TOPIC, "t"), (BROKER, "")])
def test_unclean_elections_that_are_allowed_at_run_time_are_held_at_once(
    new_members: NewMembers, resource: tuple[int, str]
) -> None:
    """R46."""
    members = two_in_sync(new_members)
    members.kill(2)
    members.run_until(lambda: members.state("t").isr == (1,))
    members.kill(1)
    members.start(2)
    members.run_for(0.2)
    assert members.state("t").leader == NO_LEADER
    assert alter(members, 2, *resource, "unclean.leader.election.enable", "true") == ErrorCode.NONE
    members.run_until(lambda: members.leads(2, "t"))
