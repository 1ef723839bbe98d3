"""Coordinators and partitions on different brokers: markers, verification, and who is told to ask whom (R74-R76)."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.broker.coordination import transaction_markers
from lamina.broker.coordination.remote_markers import RemoteMarkers
from lamina.broker.counters import Place
from lamina.coordinators.records.partitioning import partition_of
from lamina.errors import ErrorCode, NetworkError
from lamina.image.changes import remove_topic, set_leader_epochs
from lamina.image.topic import CONSUMER_OFFSETS, TRANSACTION_STATE
from lamina.peer.call import MessageCall
from lamina.wire.building import response_shape
from tests.broker.coordination.two_brokers import TwoBrokers
from tests.broker.transacting import BUMPING, CLASSIC, FIND_COORDINATOR, Me, Transacting, Versions, committed

WRITE_TXN_MARKERS, ADD_PARTITIONS = 27, 24
HEARTBEAT, LIST_GROUPS = 12, 16
HOME, AWAY = 1, 2


@pytest.fixture
def brokers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TwoBrokers]:
    monkeypatch.setattr(transaction_markers, "_RETRY_SECONDS", 0.001)
    monkeypatch.setattr(transaction_markers, "_RETRY_MAX_SECONDS", 0.001)
    opened = TwoBrokers(tmp_path)
    opened.create("t", partitions=2)
    for broker in opened.brokers.values():
        Transacting(broker).find()
    opened.join()
    # Broker 1 coordinates everything and leads t-0, broker 2 leads t-1.
    for index in range(2):
        opened.elect(TRANSACTION_STATE, index, HOME)
        opened.elect(CONSUMER_OFFSETS, index, HOME)
        opened.elect("t", index, index + 1)
    yield opened
    opened.close()


class Client(Transacting):
    """A transactional producer that writes to each partition where it is led, and asks broker 1 for the rest."""

    def __init__(self, brokers: TwoBrokers, transactional_id: str = "orders") -> None:
        super().__init__(brokers[HOME], transactional_id)
        self.at = {index: Transacting(brokers[index + 1], transactional_id) for index in range(2)}
        self.brokers = brokers

    def write(self, me: Me, versions: Versions, *indexes: int) -> list[int]:
        return [self.at[one].produce(me, [b"a"], version=versions.produce, partition=one) for one in indexes]

    def open(self, versions: Versions = CLASSIC) -> Me:
        me = self.started(versions.init)
        if versions.adds_itself:
            assert self.add(me, ("t", 0), ("t", 1)) == [0, 0]
        assert self.write(me, versions, 0, 1) == [0, 0]
        return me


def api_keys(brokers: TwoBrokers) -> list[tuple[int, int]]:
    return [(broker_id, call.api_key) for broker_id, call in brokers.asked]


def markers_answer(call: MessageCall, code: int) -> Any:
    """What a leader says that tells all partitions this error."""
    request = call._facts["markers"]
    shape = response_shape(WRITE_TXN_MARKERS, 2)
    marker = shape.of("markers")
    topic = marker.of("topics")
    partition = topic.of("partitions")
    return shape(
        markers=tuple(
            marker(
                producer_id=one["producer_id"],
                topics=tuple(
                    topic(
                        name=of["name"],
                        partitions=tuple(
                            partition(partition_index=i, error_code=code) for i in of["partition_indexes"]
                        ),
                    )
                    for of in one["topics"]
                ),
            )
            for one in request
        )
    )


@pytest.mark.parametrize("versions", [CLASSIC, BUMPING])
@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_over_two_leaders_ends_on_both(brokers: TwoBrokers, versions: Versions, commit: bool) -> None:
    client = Client(brokers)
    me = client.open(versions)
    assert api_keys(brokers) == [(HOME, ADD_PARTITIONS)], "the leader of t-1 asks the coordinator"
    assert client.end(me, commit=commit, version=versions.end).code == 0
    brokers.settle()
    assert api_keys(brokers)[1:] == [(AWAY, WRITE_TXN_MARKERS)]
    assert client.state() == ("CompleteCommit" if commit else "CompleteAbort")
    seen = [b"a"] if commit else []
    assert [committed(brokers[index + 1], partition=index) for index in range(2)] == [seen, seen]


@pytest.mark.parametrize("versions", [CLASSIC, BUMPING])
def test_a_producer_goes_on_from_transaction_to_transaction(brokers: TwoBrokers, versions: Versions) -> None:
    client = Client(brokers)
    me = client.started(versions.init)
    for number in range(3):
        if versions.adds_itself:
            assert client.add(me, ("t", 1)) == [0]
        sequence = number if versions is CLASSIC else 0
        assert client.at[1].produce(me, [b"x"], sequence, versions.produce, partition=1) == 0
        _, me = client.end(me, version=versions.end)
        brokers.settle()
    assert committed(brokers[AWAY], partition=1) == [b"x"] * 3


def test_what_is_not_in_the_transaction_is_not_written_on_another_broker(brokers: TwoBrokers) -> None:
    client = Client(brokers)
    me = client.started()
    assert client.write(me, CLASSIC, 1) == [ErrorCode.TRANSACTION_ABORTABLE]
    assert client.add(me, ("t", 1)) == [0]
    assert client.write(Me(me.id, me.epoch + 1), CLASSIC, 1) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert client.write(Me(me.id + 1, me.epoch), CLASSIC, 1) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    assert client.write(me, CLASSIC, 1) == [0]


@pytest.mark.parametrize(
    ("code", "told"),
    [(13, 19), (14, 19), (15, 19), (16, 19), (51, 19), (90, 47), (120, 120), (48, 48), (49, 49)],
)
def test_what_the_coordinator_says_reaches_the_producer_as_in_r76(brokers: TwoBrokers, code: int, told: int) -> None:
    def answer(broker_id: int, call: MessageCall) -> Any:
        (asked,) = call._facts["transactions"]
        assert asked["verify_only"]
        shape = response_shape(ADD_PARTITIONS, 5)
        result = shape.of("results_by_transaction")
        topic = result.of("topic_results")
        partition = topic.of("results_by_partition")
        partitions = (partition(partition_index=1, partition_error_code=code),)
        topics = (topic(name="t", results_by_partition=partitions),)
        return shape(error_code=0, results_by_transaction=(result(transactional_id="orders", topic_results=topics),))

    client = Client(brokers)
    me = client.started()
    brokers.interfere = answer
    assert client.write(me, CLASSIC, 1) == [told]


def test_a_coordinator_that_cannot_be_reached_is_told_as_something_that_passes(brokers: TwoBrokers) -> None:
    def away(broker_id: int, call: MessageCall) -> Any:
        raise NetworkError("gone")

    client = Client(brokers)
    me = client.started()
    assert client.add(me, ("t", 1)) == [0]
    brokers.interfere = away
    assert client.write(me, CLASSIC, 1) == [ErrorCode.NOT_ENOUGH_REPLICAS]
    brokers.interfere = lambda broker_id, call: None
    assert client.write(me, CLASSIC, 1) == [0]


# Markers


def test_a_marker_is_tried_until_its_leader_takes_it(brokers: TwoBrokers) -> None:
    troubles: list[int | None] = [None, 3, 6, 7, 19, 20, 56]

    def trouble(broker_id: int, call: MessageCall) -> Any:
        if call.api_key != WRITE_TXN_MARKERS or not troubles:
            return None
        code = troubles.pop(0)
        if code is None:
            raise NetworkError("the connection is gone")
        return markers_answer(call, code)

    client = Client(brokers)
    me = client.open()
    brokers.interfere = trouble
    assert client.end(me, settled=False).code == 0
    assert client.state() == "PrepareCommit"
    brokers.settle()
    assert not troubles
    assert client.state() == "CompleteCommit"
    assert committed(brokers[AWAY], partition=1) == [b"a"]


def test_a_marker_follows_the_leader(brokers: TwoBrokers) -> None:
    def not_leader(broker_id: int, call: MessageCall) -> Any:
        return markers_answer(call, ErrorCode.NOT_LEADER_OR_FOLLOWER) if call.api_key == WRITE_TXN_MARKERS else None

    client = Client(brokers)
    me = client.open()
    brokers.interfere = not_leader
    assert client.end(me, settled=False).code == 0
    before = brokers[HOME].parts.partitions.get("t", 1).log.log_end_offset
    for broker in brokers.brokers.values():
        broker.set_partition("t", 1, leader=HOME, leader_epoch=9, isr=(HOME,))
    brokers.settle()
    assert client.state() == "CompleteCommit"
    assert brokers[HOME].parts.partitions.get("t", 1).log.log_end_offset == before + 1


@pytest.mark.parametrize("code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED])
def test_a_partition_that_has_seen_newer_ones_is_given_up(
    brokers: TwoBrokers, code: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(broker_id: int, call: MessageCall) -> Any:
        return markers_answer(call, code) if call.api_key == WRITE_TXN_MARKERS else None

    client = Client(brokers)
    me = client.open()
    brokers.interfere = refuse
    caplog.set_level(logging.WARNING)
    assert client.end(me).code == 0
    assert client.state() == "CompleteCommit"
    assert "t-1 takes no marker of orders" in caplog.text


def test_a_partition_whose_topic_is_gone_needs_no_marker(brokers: TwoBrokers) -> None:
    def away(broker_id: int, call: MessageCall) -> Any:
        raise NetworkError("gone")

    client = Client(brokers)
    me = client.open()
    brokers.interfere = away
    assert client.end(me, settled=False).code == 0
    brokers[HOME].delete("t")
    brokers.settle()
    assert client.state() == "CompleteCommit"


def test_an_image_older_than_the_coordinator_cannot_say_that_a_topic_is_gone(brokers: TwoBrokers) -> None:
    """A broker takes its roles before it shows an image that came with other changes."""
    client = Client(brokers)
    me = client.open()
    cluster, index = brokers[HOME].parts.publisher._cluster, partition_of(client.id, 2)
    image = cluster.image
    epoch = image.partition(TRANSACTION_STATE, index).leader_epoch
    before_election = set_leader_epochs(image, {(TRANSACTION_STATE, index): epoch - 1})
    cluster.image = remove_topic(before_election, "t")
    shard = brokers[HOME].parts.transactions.shard_of(client.id)
    shard.load()
    brokers[HOME].run_until(lambda: shard.machine is not None)
    assert shard.machine is not None
    assert shard.machine.describe(client.id).partitions == (("t", 0), ("t", 1)), "it loads them all"
    assert client.end(me, settled=False).code == 0
    assert client.state() == "PrepareCommit"
    cluster.image = image
    brokers.settle()
    assert client.state() == "CompleteCommit"
    assert committed(brokers[AWAY], partition=1) == [b"a"]


def test_a_partition_without_a_leader_is_waited_for(brokers: TwoBrokers) -> None:
    client = Client(brokers)
    me = client.open()
    brokers[HOME].set_partition("t", 1, leader=-1)
    assert client.end(me, settled=False).code == 0
    for _ in range(20):
        brokers[HOME].turn()
    assert (client.state(), brokers[HOME].parts.transactions.markers.pending) == ("PrepareCommit", 2)
    brokers[HOME].set_partition("t", 1, leader=AWAY)
    brokers.settle()
    assert client.state() == "CompleteCommit"


def test_r75_a_marker_that_waits_for_its_commit_holds_no_other_one_up(brokers: TwoBrokers) -> None:
    client = Client(brokers)
    me = client.open()
    home, away = brokers[HOME], brokers[AWAY].parts.partitions.get("t", 1)
    home.set_partition("t", 0, isr=(HOME, AWAY))
    home.set_partition("t", 1, leader=-1)
    written = (home.parts.partitions.get("t", 0).log.log_end_offset, away.log.log_end_offset)
    assert client.end(me, settled=False).code == 0
    for _ in range(20):
        home.turn()
    home.set_partition("t", 1, leader=AWAY)
    home.run_until(lambda: away.log.log_end_offset == written[1] + 1)
    assert client.state() == "PrepareCommit"
    home.set_partition("t", 0, isr=(HOME,))
    brokers.settle()
    assert client.state() == "CompleteCommit"
    assert home.parts.partitions.get("t", 0).log.log_end_offset == written[0] + 1, "its marker is not written again"


def test_r75_a_marker_whose_leader_is_replaced_before_its_commit_is_written_again(brokers: TwoBrokers) -> None:
    client = Client(brokers)
    me = client.open()
    home, away = brokers[HOME], brokers[AWAY].parts.partitions.get("t", 0)
    home.set_partition("t", 0, isr=(HOME, AWAY))
    before = away.log.log_end_offset
    assert client.end(me, settled=False).code == 0
    for _ in range(20):
        home.turn()
    assert (client.state(), away.log.log_end_offset) == ("PrepareCommit", before)
    brokers.elect("t", 0, AWAY)
    assert (client.state(), away.log.log_end_offset) == ("CompleteCommit", before + 1)


def test_r75_markers_that_our_own_code_fails_to_send_are_sent_again(
    brokers: TwoBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, failures = RemoteMarkers.write, [ValueError("a bug")]

    async def fail_once(*asked: Any) -> Any:
        if failures:
            raise failures.pop()
        return await write(*asked)

    monkeypatch.setattr(RemoteMarkers, "write", fail_once)
    client = Client(brokers)
    assert client.end(client.open(), settled=False).code == 0
    brokers.settle()
    assert client.state() == "CompleteCommit"
    assert brokers[HOME].parts.counters.unexpected == {Place.COORDINATOR: 1}
    assert committed(brokers[AWAY], partition=1) == [b"a"]


def test_a_coordinator_that_resigned_sends_no_marker_and_the_next_one_does(brokers: TwoBrokers) -> None:
    """R74: loaded transactions that were being ended send their markers again."""
    never = brokers.loop.create_future()

    def hang(broker_id: int, call: MessageCall) -> Any:
        return never if call.api_key == WRITE_TXN_MARKERS else None

    client = Client(brokers)
    me = client.open()
    brokers.interfere = hang
    assert client.end(me, settled=False).code == 0
    index = partition_of(client.id, 2)
    markers = brokers[HOME].parts.transactions.markers
    assert markers.pending == 2
    brokers[HOME].set_partition(TRANSACTION_STATE, index, leader=AWAY, leader_epoch=9)
    brokers[HOME].turn()
    assert markers.pending == 0
    brokers.interfere = lambda broker_id, call: None
    brokers[HOME].set_partition(TRANSACTION_STATE, index, leader=HOME, leader_epoch=10)
    never.set_exception(NetworkError("the connection is gone"))
    brokers.settle()
    assert client.state() == "CompleteCommit"
    assert committed(brokers[AWAY], partition=1) == [b"a"]


def test_markers_of_many_transactions_share_requests_with_one_in_flight(brokers: TwoBrokers) -> None:
    gate = asyncio.Event()
    in_flight: list[int] = []

    async def wait() -> None:
        in_flight.append(1)
        assert sum(in_flight) == 1, "one at a time"
        await gate.wait()
        in_flight.append(-1)

    clients = [Client(brokers, f"orders-{number}") for number in range(8)]
    mes = [client.open() for client in clients]
    brokers.interfere = lambda broker_id, call: wait() if call.api_key == WRITE_TXN_MARKERS else None
    brokers.asked.clear()
    for client, me in zip(clients, mes, strict=True):
        assert client.end(me, settled=False).code == 0
    gate.set()
    brokers.settle()
    assert [client.state() for client in clients] == ["CompleteCommit"] * 8
    sizes = [len(call._facts["markers"]) for _, call in brokers.asked]
    assert (sum(sizes), len(sizes)) == (8, 2), "the first alone, and all that came meanwhile"


# Who coordinates what


def find(brokers: TwoBrokers, key: str, key_type: int = 0) -> Any:
    (found,) = brokers[HOME].ask(FIND_COORDINATOR, 4, key_type=key_type, coordinator_keys=[key]).coordinators
    return found


@pytest.mark.parametrize(("key_type", "topic"), [(0, CONSUMER_OFFSETS), (1, TRANSACTION_STATE)])
def test_the_coordinator_is_the_leader_at_the_clients_listener_r74(
    brokers: TwoBrokers, key_type: int, topic: str
) -> None:
    index = partition_of("key", 2)
    assert (find(brokers, "key", key_type).node_id, find(brokers, "key", key_type).host) == (HOME, "broker.test")
    brokers.elect(topic, index, AWAY)
    found = find(brokers, "key", key_type)
    assert (found.error_code, found.node_id, found.host, found.port) == (0, AWAY, "broker-2.test", 9094)
    brokers.forget_listener(HOME, AWAY)
    assert find(brokers, "key", key_type).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    brokers.elect(topic, index, -1)
    assert find(brokers, "key", key_type).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_group_that_is_led_elsewhere_is_not_coordinated_here(brokers: TwoBrokers) -> None:
    brokers.elect(CONSUMER_OFFSETS, partition_of("g", 2), AWAY)
    asked = {"group_id": "g", "generation_id": 1, "member_id": "m"}
    assert brokers[HOME].ask(HEARTBEAT, 3, **asked).error_code == ErrorCode.NOT_COORDINATOR
    assert brokers[AWAY].ask(HEARTBEAT, 3, **asked).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_groups_and_transactions_are_listed_where_they_are_coordinated(brokers: TwoBrokers) -> None:
    client = Client(brokers)
    client.started()
    assert len(brokers[HOME].ask(66, 1, duration_filter=-1).transaction_states) == 1
    assert len(brokers[AWAY].ask(66, 1, duration_filter=-1).transaction_states) == 0
    assert brokers[AWAY].ask(LIST_GROUPS, 5).error_code == 0
