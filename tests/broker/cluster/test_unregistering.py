"""UnregisterBroker (R73): the cluster goes on without a broker, and a broker without registration stops."""

import asyncio

import pytest

from lamina.broker.metadata.controller import Controller
from lamina.errors import ErrorCode, NotController
from lamina.store.interface import Delete, StoreAway
from lamina.store.membership import BROKER_IDS, Membership, Removal, Tenure
from tests.broker.cluster.conftest import NewMembers
from tests.broker.cluster.members import Members

UNREGISTER_BROKER = 64


@pytest.fixture
def members(new_members: NewMembers) -> Members:
    """Brokers 1, 2 and 3; broker 1 is the controller, and broker 3 leads a partition."""
    members = new_members()
    for node_id in (1, 2, 3):
        members.start(node_id)
    members.create(1, "t", [[3, 2, 1]])
    members.run_until(lambda: members.leads(3, "t") and members.produce(3, "t") == ErrorCode.NONE)
    return members


def unregister(members: Members, node_id: int, broker_id: int) -> ErrorCode:
    return ErrorCode(members.ask(node_id, UNREGISTER_BROKER, 0, broker_id=broker_id).error_code)


def test_a_running_broker_hands_over_and_is_told_to_stop(members: Members) -> None:
    assert unregister(members, 2, 3) == ErrorCode.NONE
    state = members.state("t")
    assert (state.leader, state.isr, state.replicas) == (2, (2, 1), (3, 2, 1)), "it stays assigned"
    assert 3 not in members.up[1].image.brokers
    members.run_until(lambda: members.up[3].is_unregistered)
    assert not members.up[3].fatal
    members.run_for(0.5)
    assert 3 not in members.up[1].image.brokers, "it does not register again"
    assert members.produce(2, "t") == ErrorCode.NONE


def test_it_takes_no_records_once_it_knows(members: Members) -> None:
    assert unregister(members, 1, 3) == ErrorCode.NONE
    members.run_until(lambda: members.up[3].is_unregistered)
    assert members.produce(3, "t", acks=1) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_it_stops_cleanly_and_joins_again_when_it_is_started(members: Members) -> None:
    assert unregister(members, 1, 3) == ErrorCode.NONE
    members.run_until(lambda: members.up[3].is_unregistered)
    began = members.loop.time()
    members.stop(3)
    assert members.loop.time() - began < 1.5, "others lead already"
    assert members.start(3).parts.storage.was_clean
    members.run_until(lambda: set(members.state("t").isr) == {1, 2, 3})


def test_the_controller_can_be_unregistered(members: Members) -> None:
    assert unregister(members, 2, 1) == ErrorCode.NONE
    members.run_until(lambda: members.up[1].is_unregistered)
    members.stop(1)
    assert members.controller().id != 1
    members.run_until(lambda: 1 not in members.controller().image.brokers)
    assert set(members.state("t").isr) == {2, 3}


def test_a_broker_that_is_away_and_has_replicas_is_known(members: Members) -> None:
    members.stop(3)
    assert unregister(members, 2, 3) == ErrorCode.NONE
    assert members.state("t").replicas == (3, 2, 1)


def test_a_broker_that_nobody_knows_is_not_registered(members: Members) -> None:
    for broker_id in (4, -1, 2**31 - 1):
        assert unregister(members, 2, broker_id) == ErrorCode.BROKER_ID_NOT_REGISTERED
    members.start(4)
    members.stop(4)
    assert unregister(members, 2, 4) == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_broker_that_is_away_is_not_remembered_for_what_it_may_have_of_deleted_topics(members: Members) -> None:
    members.stop(3)
    members.delete(1, "t")
    members.run_until(lambda: list(members.controller().image.deletions.values()) == [(3,)])
    assert unregister(members, 2, 3) == ErrorCode.NONE
    assert not members.controller().image.deletions
    assert unregister(members, 2, 3) == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_session_that_ends_is_no_unregistering(members: Members) -> None:
    members.expire(3)
    members.run_until(lambda: len(members.state("t").isr) == 3 and members.state("t").leader_epoch > 0)
    assert not members.up[3].is_unregistered


def test_one_that_was_taken_for_dead_stops_where_it_is_unregistered_before_it_returns(members: Members) -> None:
    """It would be told by the mark of its removal that it may register again."""
    session = members.up[3].session
    session.is_connected = False
    members.refused.add(3)
    members.isolate(3)
    members.run_until(lambda: 3 not in members.up[1].image.brokers)
    assert unregister(members, 2, 3) == ErrorCode.NONE
    members.refused.clear()
    members.heal()
    session.is_connected = True
    members.zookeeper.connection_changed(session)
    members.run_until(lambda: members.up[3].is_unregistered)
    members.run_for(0.5)
    assert 3 not in members.up[1].image.brokers
    assert not members.up[3].fatal


def test_a_registration_that_is_removed_by_hand_ends_the_broker_with_an_error(members: Members) -> None:
    """So its supervisor starts it again."""
    path, session = f"{BROKER_IDS}/3", members.up[1].session
    entry = session.get(path)
    assert entry is not None
    session.transact([Delete(path, entry.version)])
    members.run_until(lambda: members.up[3].fatal == [Removal.UNEXPLAINED])
    assert not members.up[3].is_unregistered
    members.run_until(lambda: members.state("t").leader == 2)


def test_a_controller_that_cannot_write_hands_the_request_to_the_next(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    membership = members.up[1].member._membership

    def fails_once(*_: object) -> None:
        monkeypatch.undo()
        raise StoreAway("ZooKeeper does not answer")

    monkeypatch.setattr(membership, "unregister", fails_once)
    epoch = members.up[1].image.controller_epoch
    assert unregister(members, 2, 3) == ErrorCode.NONE
    assert members.controller().image.controller_epoch > epoch
    members.run_until(lambda: members.up[3].is_unregistered)


def test_one_that_registers_again_meanwhile_is_taken_out_all_the_same(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    registration = members.up[3].member._registration
    assert registration is not None
    members.kill(3, session_ends=False)
    membership, again = members.up[1].member._membership, Membership(members.zookeeper.connect(), 3)
    take_away = membership.unregister

    def overtaken(broker_id: int, broker_epoch: int, tenure: Tenure) -> bool:
        monkeypatch.undo()
        again.try_register(registration)
        return take_away(broker_id, broker_epoch, tenure)

    monkeypatch.setattr(membership, "unregister", overtaken)
    assert unregister(members, 2, 3) == ErrorCode.NONE
    assert set(membership.brokers()) == {1, 2}
    assert again.removal() is Removal.UNREGISTERED


def test_what_has_begun_ends_also_when_nobody_waits_for_it(members: Members) -> None:
    """Else a broker that leads nothing any more would stay."""

    async def give_up() -> None:
        asked = asyncio.get_running_loop().create_task(members.up[1].member.unregister_broker(3))
        await members.up[1].member.wait_until(lambda image: image.brokers[3].is_draining)
        asked.cancel()

    members.finish(give_up())
    members.run_until(lambda: members.up[3].is_unregistered)


def test_a_controller_that_stops_meanwhile_says_that_it_is_none(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Controller, "release", never)
    member = members.up[1].member

    async def stopped_meanwhile() -> None:
        asked = asyncio.get_running_loop().create_task(member.unregister_broker(3))
        await asyncio.sleep(0)
        await member.stop()
        with pytest.raises(NotController, match="this broker stops"):
            await asked

    members.finish(stopped_meanwhile())
