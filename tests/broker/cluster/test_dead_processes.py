"""Brokers whose processes are gone are found before their sessions end, and those that live are left alone."""

import asyncio
import errno
from typing import Any

import pytest

from lamina.broker.metadata import following
from lamina.broker.metadata.controller import Controller
from lamina.broker.requests.handlers import follow_metadata
from lamina.errors import ErrorCode
from lamina.peer.addresses import Address
from lamina.peer.connection import Connection
from lamina.peer.limits import Limits
from tests.broker.cluster.conftest import NewMembers
from tests.broker.cluster.members import Members, MemoryConnector


@pytest.fixture
def members(new_members: NewMembers) -> Members:
    """Brokers 1, 2 and 3; broker 1 is the controller, broker 2 leads a partition, and the others are in sync."""
    members = new_members()
    for node_id in (1, 2, 3):
        members.start(node_id)
    members.create(1, "t", [[2, 3, 1]])
    members.run_until(lambda: members.leads(2, "t") and members.produce(2, "t") == ErrorCode.NONE)
    return members


def kill_process(members: Members, node_id: int) -> None:
    """Its machine lives, and ZooKeeper holds its session for good."""
    members.kill(node_id, session_ends=False, machine_lives=True)


def test_a_leader_whose_process_is_gone_is_replaced_while_its_session_lasts(members: Members) -> None:
    kill_process(members, 2)
    members.run_until(lambda: members.leads(3, "t"))
    assert members.state("t").isr == (3, 1)
    assert members.produce(3, "t") == ErrorCode.NONE


def test_a_controller_whose_process_is_gone_is_replaced_while_its_session_lasts(members: Members) -> None:
    epoch = members.up[2].image.controller_epoch
    kill_process(members, 1)
    members.run_until(lambda: members.controller().image.controller_epoch > epoch)
    members.run_until(lambda: set(members.state("t").isr) == {2, 3})
    assert members.produce(2, "t") == ErrorCode.NONE


def test_the_controller_and_a_leader_that_die_together_are_both_replaced(members: Members) -> None:
    kill_process(members, 1)
    kill_process(members, 2)
    members.run_until(lambda: members.leads(3, "t"))
    assert members.controller().id == 3
    assert members.state("t").isr == (3,)


def test_of_leaders_that_die_together_none_is_elected_r48(members: Members) -> None:
    members.start(4)
    members.create(1, "u", [[2, 3, 4]])
    members.run_until(lambda: members.leads(2, "u") and members.produce(2, "u") == ErrorCode.NONE)
    before = members.state("u")
    assert before.isr == (2, 3, 4)
    kill_process(members, 2)
    members.run_for(0.02)
    kill_process(members, 3)
    members.run_until(lambda: members.leads(4, "u"))
    after = members.state("u")
    assert (after.leader_epoch, after.isr) == (before.leader_epoch + 1, (4,))


def test_one_that_falls_silent_is_not_elected_where_another_can_lead(members: Members) -> None:
    """It may be dead, or cut off: it could not be told that it leads."""
    members.isolate(3)
    kill_process(members, 2)
    members.run_until(lambda: members.leads(1, "t"))
    assert members.state("t").isr == (3, 1)


def test_a_machine_that_says_nothing_keeps_its_place_as_long_as_its_session(members: Members) -> None:
    """Without power it cannot be told from a paused one."""
    members.kill(2, session_ends=False)
    members.run_for(2.0)
    assert members.state("t").leader == 2
    members.zookeeper.leave(members.ended[2].session)
    members.run_until(lambda: members.leads(3, "t"))


def test_a_cut_off_broker_keeps_its_registration(members: Members) -> None:
    epochs = {one: members.up[one].member.broker_epoch for one in members.up}
    for node_id in (1, 2):
        members.isolate(node_id)
        members.run_for(1.0)
        members.heal()
    members.run_for(0.5)
    assert {one: members.up[one].member.broker_epoch for one in members.up} == epochs


def test_a_live_broker_that_was_taken_for_dead_registers_again_and_serves(members: Members) -> None:
    """A firewall before it rejects, and its connections were ended: nobody can tell it from a dead one."""
    epoch = members.up[2].member.broker_epoch
    members.refused.add(2)
    members.isolated.add(2)
    members._cut(members.up[2])
    members.run_until(lambda: members.leads(3, "t"))
    assert members.produce(2, "t", timeout_ms=200) != ErrorCode.NONE, "nobody else has it"
    members.refused.clear()
    members.heal()
    members.run_until(lambda: members.up[2].member.broker_epoch > epoch)
    members.run_until(lambda: set(members.state("t").isr) == {1, 2, 3})
    assert not members.up[2].is_unregistered
    assert not members.up[2].fatal


def test_a_live_controller_that_was_taken_for_dead_goes_on_as_a_broker(members: Members) -> None:
    members.refused.add(1)
    members._cut(members.up[1])
    members.run_until(lambda: any(members.up[one].member.is_controller for one in (2, 3)))
    members.refused.clear()
    members.run_until(lambda: [one.member.is_controller for one in members.up.values()].count(True) == 1)
    members.run_until(lambda: set(members.state("t").isr) == {1, 2, 3})
    assert not members.up[1].is_unregistered


def test_a_controller_that_rejects_new_connections_stays_while_an_older_one_is_open(members: Members) -> None:
    """One of several connections ends, and a firewall keeps its successor out: the long poll goes on."""
    controller, follower = members.up[1], members.up[2]
    epoch = controller.member.broker_epoch
    members.refused.add(1)
    reporting = [one for one in controller.transports if one.client_id == "broker-2-report"]
    assert reporting
    for transport in reporting:
        transport.end()
    for _ in range(4):
        follower.member.tell()
        members.run_for(0.2)
    assert controller.member.is_controller
    assert controller.member.broker_epoch == epoch
    members.refused.clear()
    members.run_until(lambda: set(members.state("t").isr) == {1, 2, 3})


def test_a_broker_that_comes_back_at_once_finds_its_place(members: Members) -> None:
    kill_process(members, 2)
    members.start(2)
    members.run_until(lambda: set(members.state("t").isr) == {1, 2, 3})
    members.run_for(1.0)
    assert set(members.state("t").isr) == {1, 2, 3}


def test_a_broker_that_reaches_nobody_itself_takes_nobody_out_of_office(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file of hosts is wrong: the others' addresses refuse it alone."""
    blind = 4
    connect = MemoryConnector.connect

    async def refused_there(connector: MemoryConnector, address: Address, limits: Limits) -> Connection:
        if connector.is_of(blind):
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        return await connect(connector, address, limits)

    monkeypatch.setattr(MemoryConnector, "connect", refused_there)
    epoch = members.controller().image.controller_epoch
    members.begin_start(blind)
    members.run_for(2.0)
    assert members.controller().image.controller_epoch == epoch
    assert {one.member.is_controller for one in members.up.values() if one.id != 1} == {False}


def hold_reports(members: Members, monkeypatch: pytest.MonkeyPatch, *, of: set[int], to: int) -> None:
    """Of these brokers the next controller, which is to be broker ``to``, hears nothing."""
    follow = Controller.follow

    async def unheard(controller: Controller, broker_id: int, *asked: Any) -> Any:
        if broker_id in of:
            await asyncio.Event().wait()
        return await follow(controller, broker_id, *asked)

    monkeypatch.setattr(Controller, "follow", unheard)
    for one in members.up.values():
        if one.id != to:
            monkeypatch.setattr(one.member._membership, "elect", lambda: None)


def test_one_that_dies_before_it_has_reported_to_a_new_controller_is_found(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_reports(members, monkeypatch, of={2}, to=3)
    kill_process(members, 1)
    members.run_until(lambda: members.up[3].member.is_controller)
    members.run_for(1.5)
    kill_process(members, 2)
    members.run_until(lambda: members.leads(3, "t"))
    assert members.state("t").isr == (3,)


def test_a_new_controller_that_was_never_answered_removes_nobody(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Perhaps it reaches nobody: the others' addresses refuse it alone."""
    members.start(4)
    hold_reports(members, monkeypatch, of={2, 3}, to=4)
    members.up[4].member.election.answered(-1)
    epochs = {one: members.up[one].member.broker_epoch for one in (2, 3)}
    members.refused |= {2, 3}
    kill_process(members, 1)
    members.run_until(lambda: members.up[4].member.is_controller)
    members.run_for(1.5)
    assert {one: members.up[one].member.broker_epoch for one in (2, 3)} == epochs


def test_a_broker_that_is_busy_with_a_change_keeps_its_registration(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks nothing meanwhile, and is connected; whoever connects anew is rejected."""
    epoch, publisher = members.up[2].member.broker_epoch, members.up[2].parts.publisher
    apply = publisher.apply

    async def slowly(*change: Any) -> Any:
        await asyncio.sleep(1.0)
        return await apply(*change)

    monkeypatch.setattr(publisher, "apply", slowly)
    members.refused.add(2)
    members.finish(members.begin_create(1, "u", [[1, 3]]))
    members.run_for(1.5)
    assert members.up[2].member.broker_epoch == epoch


def test_a_question_that_is_open_does_not_hold_a_dead_broker_in_the_cluster(
    new_members: NewMembers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server carries on with what it received when the client hangs up."""
    for module in (following, follow_metadata):
        monkeypatch.setattr(module, "LONGEST_WAIT_MS", 3_600_000)
    members = new_members()
    for node_id in (1, 2):
        members.start(node_id)
    members.run_until(lambda: 2 in members.controller().image.brokers)
    kill_process(members, 2)
    members.run_until(lambda: 2 not in members.controller().image.brokers)
