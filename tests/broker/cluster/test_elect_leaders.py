"""Elections on request in a cluster (R68): any broker takes the request, and answers when clients are told."""

from datetime import timedelta
from typing import Any

import pytest

from lamina.errors import ErrorCode
from lamina.image.topic import NO_LEADER
from tests.broker.cluster.conftest import NewMembers
from tests.broker.cluster.members import DELETE_TOPICS, Members

ELECT_LEADERS = 43
PREFERRED, UNCLEAN = 0, 1


@pytest.fixture
def members(new_members: NewMembers) -> Members:
    """Brokers 1, 2 and 3; broker 1 is the controller. Broker 3 was away, and leads nothing since."""
    members = new_members()
    for node_id in (1, 2, 3):
        members.start(node_id)
    members.create(1, "t", [[3, 2], [2, 3], [3, 1]])
    members.run_until(lambda: members.leads(3, "t") and members.produce(3, "t") == ErrorCode.NONE)
    return members


def elect(
    members: Members, node_id: int, election_type: int, *indexes: int, timeout_ms: int = 5000
) -> dict[int, ErrorCode]:
    """Of all partitions where none is named."""
    named = [{"topic": "t", "partitions": indexes}] if indexes else None
    timeout = timedelta(milliseconds=timeout_ms)
    response = members.ask(
        node_id, ELECT_LEADERS, 2, election_type=election_type, topic_partitions=named, timeout=timeout
    )
    assert response.error_code == ErrorCode.NONE
    results = [result for topic in response.replica_election_results for result in topic.partition_result]
    return {result.partition_id: ErrorCode(result.error_code) for result in results}


def restart(members: Members, node_id: int) -> None:
    members.stop(node_id)
    members.start(node_id)


def leaders(members: Members) -> list[int]:
    return [members.state("t", index).leader for index in range(3)]


def in_sync_again(members: Members) -> None:
    members.run_until(lambda: all(len(members.state("t", index).isr) == 2 for index in range(3)))


def test_any_broker_brings_preferred_leaders_back(members: Members) -> None:
    restart(members, 3)
    in_sync_again(members)
    assert leaders(members) == [2, 2, 1]
    assert elect(members, 2, PREFERRED, 0, 1) == {0: ErrorCode.NONE, 1: ErrorCode.ELECTION_NOT_NEEDED}
    assert leaders(members) == [3, 2, 1]
    assert members.up[1].image.partition("t", 0).leader == 3, "the controller answers when it tells clients"
    assert elect(members, 3, PREFERRED) == {2: ErrorCode.NONE}
    assert leaders(members) == [3, 2, 3]
    assert elect(members, 3, PREFERRED) == {}
    members.run_until(lambda: members.produce(3, "t") == ErrorCode.NONE)


def test_an_election_on_request_is_counted(members: Members) -> None:
    restart(members, 3)
    in_sync_again(members)
    counters = members.up[1].parts.counters.replication
    before = counters.leader_elections
    assert elect(members, 1, PREFERRED) == {0: ErrorCode.NONE, 2: ErrorCode.NONE}
    assert (counters.leader_elections - before, counters.unclean_leader_elections) == (2, 0)


def test_a_preferred_replica_that_is_away_or_behind_is_not_elected(members: Members) -> None:
    members.stop(3)
    assert elect(members, 2, PREFERRED) == dict.fromkeys((0, 2), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    members.isolate(2)
    members.start(3)
    members.run_for(0.2)
    assert elect(members, 1, PREFERRED, 0) == {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}


def test_an_unclean_election_goes_on_with_what_is_left(members: Members) -> None:
    members.stop(2)
    assert members.produce(3, "t") == ErrorCode.NONE
    members.kill(3)
    members.start(2)
    members.run_until(lambda: members.state("t", 0).leader == NO_LEADER)
    assert elect(members, 1, PREFERRED, 0) == {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    assert elect(members, 2, UNCLEAN, 0, 2) == {0: ErrorCode.NONE, 2: ErrorCode.ELECTION_NOT_NEEDED}
    members.run_until(lambda: members.leads(2, "t"))
    members.run_until(lambda: members.produce(2, "t") == ErrorCode.NONE)
    assert members.up[1].parts.counters.replication.unclean_leader_elections == 1


def test_nobody_can_be_elected_where_no_replica_is_left(members: Members) -> None:
    members.stop(2)
    members.stop(3)
    assert elect(members, 1, UNCLEAN) == {
        0: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        1: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    }


def test_an_answer_that_clients_are_not_told_in_time_is_timed_out(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    restart(members, 3)
    in_sync_again(members)
    publisher = members.up[1].parts.publisher

    async def stuck(*_: Any) -> Any:
        await members.loop.create_future()

    monkeypatch.setattr(publisher, "apply", stuck)
    assert elect(members, 2, PREFERRED, 0, 1, timeout_ms=100) == {
        0: ErrorCode.REQUEST_TIMED_OUT,
        1: ErrorCode.ELECTION_NOT_NEEDED,
    }
    assert leaders(members)[0] == 3, "it is elected all the same"


def test_an_election_of_a_topic_that_was_made_anew_meanwhile_is_over(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker that answers may learn of all of it at once: the new topic has fewer partitions, and other epochs."""
    restart(members, 3)
    in_sync_again(members)
    following = members.up[1].parts.member_parts.following  # type: ignore[union-attr]
    wait_until = following.wait_until

    async def made_anew(holds: Any) -> None:
        monkeypatch.setattr(following, "wait_until", wait_until)
        topics = [{"name": "t", "topic_id": None}]
        await members.begin(1, DELETE_TOPICS, 6, topics=topics, timeout=timedelta(seconds=5))
        await members.begin_create(1, "t", [[3, 2]])
        await wait_until(holds)

    monkeypatch.setattr(following, "wait_until", made_anew)
    assert elect(members, 1, PREFERRED, 0, 2) == dict.fromkeys((0, 2), ErrorCode.NONE)


def test_a_topic_that_is_being_deleted_elects_nobody(members: Members) -> None:
    restart(members, 3)
    members.kill(3, session_ends=False)
    topics = [{"name": "t", "topic_id": None}]
    deletion = members.loop.create_task(members.begin(1, DELETE_TOPICS, 6, topics=topics, timeout=timedelta(seconds=5)))
    members.run_until(lambda: members.up[1].member.decided.topics["t"].is_being_deleted)
    assert elect(members, 1, PREFERRED, 0) == {0: ErrorCode.INVALID_TOPIC_EXCEPTION}
    members.run_until(deletion.done)


# By themselves


def test_the_controller_brings_leaders_back_where_too_many_are_elsewhere_r49(members: Members) -> None:
    restart(members, 3)
    members.finish(members.up[1].member.balance_leaders(10))
    assert leaders(members) == [2, 2, 1], "broker 3 is not in sync yet"
    in_sync_again(members)
    for node_id in (2, 3):
        members.finish(members.up[node_id].member.balance_leaders(10))
    assert leaders(members) == [2, 2, 1], "only the controller decides"
    members.finish(members.up[1].member.balance_leaders(100))
    assert leaders(members) == [2, 2, 1], "not more than a hundred percent"
    members.finish(members.up[1].member.balance_leaders(99))
    assert leaders(members) == [3, 2, 3]
    members.run_until(lambda: members.leads(3, "t"))


def test_a_controller_that_is_none_any_more_brings_nothing_back(
    members: Members, caplog: pytest.LogCaptureFixture
) -> None:
    restart(members, 3)
    in_sync_again(members)
    members.set_zookeeper_away(is_away=True)
    controller = members.up[1].member.controller
    assert controller is not None
    members.finish(members.up[1].member.balance_leaders(10))
    members.finish(members.up[1].member.balance_leaders(10))
    assert not controller.is_active
    told = [one.getMessage() for one in caplog.records if "not brought back" in one.getMessage()]
    assert len(told) == 1


def test_a_broker_that_does_not_follow_the_controller_gets_nothing_back(members: Members) -> None:
    """It would not learn that it leads, and stays in sync for as long as it may lag."""
    restart(members, 3)
    in_sync_again(members)
    controller = members.up[1].member.controller
    assert controller is not None

    async def balance_unheard() -> None:
        controller._heard_at[3] -= 3
        await controller.balance_leaders(0)

    # In one turn of the loop: the broker would be heard in the next.
    members.finish(balance_unheard())
    assert leaders(members) == [2, 2, 1]
    members.up[3].member.tell()
    members.run_until(lambda: leaders_are_balanced(members))


def leaders_are_balanced(members: Members) -> bool:
    members.finish(members.up[1].member.balance_leaders(0))
    return leaders(members) == [3, 2, 3]
