"""Session trouble: what a member does while its session is not proven, and after it was lost."""

import logging
from datetime import timedelta
from errno import ENOSPC

import pytest

from lamina.errors import ErrorCode, NotController
from lamina.store.interface import Delete
from lamina.store.member_file import MemberRecord
from lamina.store.membership import CONTROLLER
from tests.broker.admin.app_calls import call, subject_of
from tests.broker.cluster.conftest import NewMembers
from tests.broker.cluster.members import CREATE_TOPICS, METADATA, Members

DESCRIBE_CLUSTER = 60
REFUSED = ErrorCode.NOT_LEADER_OR_FOLLOWER


def three(new_members: NewMembers) -> Members:
    """With a topic that broker 1 leads and all are in sync with. Broker 1 is the controller."""
    members = new_members()
    for node_id in (1, 2, 3):
        members.start(node_id)
    members.create(2, "t", [[1, 2, 3]])
    members.run_until(lambda: members.leads(1, "t") and members.produce(1, "t") == ErrorCode.NONE)
    assert members.state("t").isr == (1, 2, 3)
    return members


def health(members: Members, node_id: int) -> tuple[int, list[str]]:
    """The status and the warnings of ``/readyz``."""
    status, told = members.finish(call(subject_of(members.up[node_id]), "/readyz"))
    return status, told["warnings"]


def test_a_killed_leader_is_replaced(new_members: NewMembers) -> None:
    members = three(new_members)
    assert members.produce(1, "t", acks=1) == ErrorCode.NONE
    members.kill(1)
    members.run_until(lambda: members.leads(2, "t"))
    assert members.state("t").isr == (2, 3)
    assert members.produce(2, "t") == ErrorCode.NONE


def test_a_full_disk_keeps_no_member_from_following_the_next_controller(
    new_members: NewMembers, caplog: pytest.LogCaptureFixture
) -> None:
    members = three(new_members)

    def full(_: MemberRecord) -> None:
        raise OSError(ENOSPC, "No space left on device")

    for process in members.up.values():
        process.member.election._remember = full
    members.kill(1)
    members.run_until(lambda: members.leads(2, "t"))
    assert members.produce(2, "t") == ErrorCode.NONE
    assert [process.fatal for process in members.up.values()] == [[], []]
    assert "controller epoch 2 cannot be remembered: No space left on device" in caplog.messages


def test_without_zookeeper_only_what_all_in_sync_members_have_is_acknowledged(
    new_members: NewMembers, caplog: pytest.LogCaptureFixture
) -> None:
    """The lease is over: acks 0 and 1 are refused, acks=all goes on, and no in-sync set changes."""
    members = three(new_members)
    end_offset = members.up[1].parts.partitions.find("t", 0).log.log_end_offset  # type: ignore[union-attr]
    with caplog.at_level(logging.WARNING):
        members.set_zookeeper_away(is_away=True)
        assert members.produce(1, "t", acks=1) == REFUSED
        assert members.produce(1, "t", acks=-1) == ErrorCode.NONE
        members.kill(3, session_ends=False)
        assert members.produce(1, "t", acks=-1, timeout_ms=200) == ErrorCode.REQUEST_TIMED_OUT
        members.run_for(1.2)
        members.finish(members.up[1].parts.upkeep.shrink_in_sync())
        assert members.state("t").isr == (1, 2, 3), "broker 3 has been behind for long, and nobody may say so"
    told = [line for line in caplog.messages if "ZooKeeper" in line]
    assert told == ["no longer the controller of epoch 1: ZooKeeper cannot be reached"]
    assert health(members, 1) == (
        200,
        ["ZooKeeper does not answer this broker: writes with acks 0 and 1 are refused, and no metadata changes"],
    )
    members.set_zookeeper_away(is_away=False)
    members.controller()
    members.run_until(lambda: members.produce(1, "t", acks=1) == ErrorCode.NONE)
    assert health(members, 1) == (200, [])
    log = members.up[1].parts.partitions.find("t", 0).log  # type: ignore[union-attr]
    assert log.log_end_offset == end_offset + 3


def test_who_changes_metadata_without_zookeeper_is_told_what_is_missing(new_members: NewMembers) -> None:
    """Not that a controller is missing, which only follows from it; and nobody is shown as the controller."""
    members = three(new_members)
    assert members.ask(2, DESCRIBE_CLUSTER, 1, endpoint_type=1).controller_id == 1
    members.set_zookeeper_away(is_away=True)
    topic = {"name": "u", "num_partitions": 1, "replication_factor": 1}
    for node_id in (1, 2):
        [told] = members.ask(node_id, CREATE_TOPICS, 7, topics=[topic], timeout=timedelta(seconds=1)).topics
        assert told.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert told.error_message == "metadata cannot be changed now: ZooKeeper does not answer"
        assert members.ask(node_id, DESCRIBE_CLUSTER, 1, endpoint_type=1).controller_id == -1
        assert members.ask(node_id, METADATA, 12, topics=[]).controller_id == 1


def test_a_controller_whose_session_outlived_an_outage_goes_on(new_members: NewMembers) -> None:
    """A server that restarts gives every session its whole time again: nobody else can be elected."""
    members = three(new_members)
    (controller,) = [one for one in members.up.values() if one.member.is_controller]
    sessions = {node_id: process.session.session_id for node_id, process in members.up.items()}
    members.set_zookeeper_away(is_away=True)
    controller.member.look_again()
    members.run_until(lambda: not controller.member.is_controller)
    members.set_zookeeper_away(is_away=False)
    members.controller()
    assert {node_id: process.session.session_id for node_id, process in members.up.items()} == sessions
    members.create(3, "another", [[3, 2]])


def test_a_leader_that_lost_its_session_acknowledges_nothing_alone_before_it_knows_its_roles(
    new_members: NewMembers,
) -> None:
    """Others lead what it led, which it learns only after it has registered anew."""
    members = three(new_members)
    leader = 2
    assert members.controller().id != leader, "a controller in office sees that the session was lost"
    members.create(1, "led", [[leader, 1, 3]])
    members.run_until(lambda: members.leads(leader, "led"))
    process = members.up[leader]
    old_epoch, old_session = process.member.broker_epoch, process.session.session_id
    outcomes = []
    members.expire(leader)
    while members.leads(leader, "led") and members.state("led").leader == leader:
        members.run_for(0.002)
    while members.leads(leader, "led"):
        outcomes.append(members.produce(leader, "led", acks=1))
    assert ErrorCode.NONE not in outcomes
    assert process.member.broker_epoch > old_epoch
    assert process.session.session_id != old_session


def test_a_member_takes_its_roles_again_after_a_lost_session(new_members: NewMembers) -> None:
    members = three(new_members)
    for lost in (1, 2, 3):
        lose_session(members, lost)
        members.run_until(lambda: members.state("t").isr == (1, 2, 3))
        members.run_until(lambda: members.produce(members.state("t").leader, "t", acks=1) == ErrorCode.NONE)
        assert members.produce(members.state("t").leader, "t") == ErrorCode.NONE
        assert members.up[lost].fatal == []


def lose_session(members: Members, node_id: int) -> None:
    """Let a session expire, and wait until its broker is there in another one."""
    process = members.up[node_id]
    before = process.member.broker_epoch

    def is_back() -> bool:
        known = members.controller().image.brokers.get(node_id)
        return known is not None and before < known.epoch == process.member.broker_epoch

    members.expire(node_id)
    members.run_until(is_back)


def test_a_controller_leaves_an_office_that_somebody_ended_before_it_is_elected_again(new_members: NewMembers) -> None:
    """Operators of Kafka delete ``/controller`` to have one elected: what the old tenure began must not go on."""
    members = three(new_members)
    (process,) = [one for one in members.up.values() if one.member.is_controller]
    before = process.member.controller
    assert before is not None
    somebody = members.zookeeper.connect()
    office = somebody.get(CONTROLLER)
    assert office is not None
    somebody.transact([Delete(CONTROLLER, office.version)])
    members.run_until(lambda: members.controller().member.controller is not before)
    assert not before.is_active
    tenure = members.controller().member.controller
    assert tenure is not None
    with pytest.raises(NotController):
        members.finish(before.change(lambda image: image))
    members.create(3, "another", [[3, 2]])
    assert members.controller().member.controller is tenure, "it stays in office"
