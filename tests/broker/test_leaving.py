"""Clients that go away while something is being done for them."""

import asyncio
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lamina.errors import ErrorCode
from lamina.wire.versions import nested_schema, request_schema
from tests.broker.in_thread import BrokerInThread
from tests.broker.leaks import check_forgotten
from tests.broker.process import BrokerProcess
from tests.broker.raw import (
    BEYOND_PATIENCE_MS,
    RawClient,
    batch_of,
    fetch_request,
    metadata_request,
    produce_request,
)


@pytest.fixture
def broker_here(tmp_path: Path) -> Iterator[BrokerInThread]:
    started = BrokerInThread(tmp_path / "data").start()
    yield started
    started.stop()


def test_a_topic_is_made_whole_even_if_the_client_that_wanted_it_has_left(broker: BrokerProcess, topic: str) -> None:
    for number in range(20):
        name = f"{topic}-{number}"
        with RawClient(broker) as leaving:
            leaving.begin(metadata_request(name))
        with RawClient(broker) as staying:
            topic_id = staying.create_topic(name)
            answer = staying.produce(name, batch_of((None, b"v"), now_ms=time.time_ns() // 1_000_000))
            assert answer.error_code == ErrorCode.NONE, "what the metadata tells of is served"
            assert staying.fetch(topic_id, 0).error_code == ErrorCode.NONE


def test_a_waiting_client_that_leaves_is_forgotten(broker_here: BrokerInThread) -> None:
    with RawClient(broker_here) as staying:
        topic_id = staying.create_topic("t")

    def wait_and_leave() -> None:
        with RawClient(broker_here) as leaving:
            leaving.begin(fetch_request([(topic_id, [(0, 0)])], max_wait_ms=BEYOND_PATIENCE_MS))

    check_forgotten(wait_and_leave, visits=200)


def wait_until(broker: BrokerInThread, condition: Callable[[], bool]) -> None:
    """Until it is so on the broker's loop; fails long before a long poll would end by itself."""

    async def look() -> None:
        while not condition():
            await asyncio.sleep(0)

    broker.run(asyncio.wait_for(look(), 20))


def leave(client: RawClient, *, resets: bool) -> None:
    if resets:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()


@pytest.fixture(params=["asyncio", "uvloop"])
def broker_on_any_loop(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[BrokerInThread]:
    new_event_loop = pytest.importorskip(request.param).new_event_loop
    started = BrokerInThread(tmp_path / "data", new_event_loop).start()
    yield started
    started.stop()


@pytest.mark.parametrize("resets", [False, True])
def test_whoever_expects_no_response_and_leaves_at_once_is_served_and_forgotten(
    broker_on_any_loop: BrokerInThread, resets: bool
) -> None:
    """The loop finds the requests and the end at the same time, and may tell of a reset only once."""
    broker = broker_on_any_loop
    leaving = RawClient(broker)
    leaving.create_topic("t")
    batch = batch_of((None, b"v"), now_ms=time.time_ns() // 1_000_000)

    async def send_and_leave() -> None:
        # In one piece: a second one might wait for the first, and a reset takes what was not sent.
        leaving.send(b"".join(leaving.encoded(produce_request("t", batch, acks=0)) for _ in range(2)))
        leave(leaving, resets=resets)

    broker.run(send_and_leave())
    wait_until(broker, lambda: not broker.started.listening.connections)
    assert broker.parts.partitions.get("t", 0).log.log_end_offset == 2


@pytest.mark.parametrize("resets", [False, True])
@pytest.mark.parametrize("comes_later", [False, True], ids=["together", "later"])
def test_whoever_leaves_waits_for_nothing_and_what_was_sent_is_appended(
    broker_on_any_loop: BrokerInThread, comes_later: bool, resets: bool
) -> None:
    """Behind a long poll that waits, whether the rest came with it or is still unread when the client leaves."""
    if comes_later and not hasattr(select, "epoll"):
        pytest.skip("without epoll an end behind unread bytes is not seen")
    broker = broker_on_any_loop
    with RawClient(broker) as other:
        topic_id = other.create_topic("t")
    connections, counters = broker.started.listening.connections, broker.parts.counters
    wait_until(broker, lambda: not connections)
    batch = batch_of((None, b"v"), now_ms=time.time_ns() // 1_000_000)
    poll = fetch_request([(topic_id, [(0, 0)])], max_wait_ms=BEYOND_PATIENCE_MS, min_bytes=1 << 30)
    leaving = RawClient(broker)
    behind: list[Any] = [poll, produce_request("t", batch, acks=0), poll, produce_request("t", batch, acks=1), poll]
    if comes_later:
        leaving.begin(poll)
        wait_until(broker, lambda: counters.parked_fetches == 1)
        leaving.send(b"".join(map(leaving.encoded, behind)))
        # The bytes are seen, and left where they are.
        wait_until(broker, lambda: not any(connection._is_reading for connection in connections))
    else:
        leaving.send(b"".join(map(leaving.encoded, [poll, *behind])))
        wait_until(broker, lambda: counters.parked_fetches == 1)
    leave(leaving, resets=resets)
    wait_until(broker, lambda: not connections)
    assert counters.parked_fetches == 0
    assert broker.parts.partitions.get("t", 0).log.log_end_offset == 2


FIND_COORDINATOR, JOIN_GROUP, SYNC_GROUP, GROUPS_VERSION = 10, 11, 14, 3


def join_request(member_id: str = "") -> Any:
    schema = request_schema(JOIN_GROUP, GROUPS_VERSION)
    return schema(
        group_id="g",
        session_timeout=timedelta(minutes=5),
        rebalance_timeout=timedelta(minutes=5),
        member_id=member_id,
        protocol_type="consumer",
        protocols=(nested_schema(schema, "protocols")(name="range", metadata=b""),),
    )


def test_whoever_leaves_waits_for_no_other_members(tmp_path: Path) -> None:
    """Neither for them to join nor for the leader's assignment."""
    broker = BrokerInThread(tmp_path / "data", **{"group.initial.rebalance.delay.ms": "0"}).start()
    try:
        connections, partitions = broker.started.listening.connections, broker.parts.partitions
        behind = produce_request("t", batch_of((None, b"v"), now_ms=time.time_ns() // 1_000_000), acks=0)
        with RawClient(broker) as leader, RawClient(broker) as follower:
            leader.create_topic("t")
            find = request_schema(FIND_COORDINATOR, 3)
            assert leader.ask(find(key="g", key_type=0)).error_code == ErrorCode.NONE
            first = leader.ask(join_request())
            assert (first.error_code, first.leader) == (ErrorCode.NONE, first.member_id)
            with RawClient(broker) as leaving:
                leaving.send(leaving.encoded(join_request()) + leaving.encoded(behind))
            wait_until(broker, lambda: len(connections) == 2)
            assert partitions.get("t", 0).log.log_end_offset == 1

            follower.begin(join_request())
            wait_until(broker, lambda: any(connection.is_waiting for connection in connections))
            leader.begin(join_request(first.member_id))
            joined = follower.answer(JOIN_GROUP, GROUPS_VERSION)
            sync = request_schema(SYNC_GROUP, GROUPS_VERSION)(
                group_id="g",
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                group_instance_id=None,
                assignments=(),
            )
            follower.send(follower.encoded(sync) + follower.encoded(behind))
            follower.socket.close()
            wait_until(broker, lambda: len(connections) == 1)
            assert partitions.get("t", 0).log.log_end_offset == 2
    finally:
        broker.stop()


def test_a_client_that_says_nonsense_is_forgotten(broker_here: BrokerInThread) -> None:
    def talk_nonsense() -> None:
        with RawClient(broker_here) as bad:
            bad.send(struct.pack(">i", 64) + b"\xff" * 64)
            assert bad.is_closed()

    check_forgotten(talk_nonsense, visits=200)


def test_a_client_that_is_kept_would_be_noticed(broker_here: BrokerInThread) -> None:
    with ExitStack() as kept:

        def stay() -> None:
            kept.enter_context(RawClient(broker_here)).ask(metadata_request())

        # Clients of other tests may be leaving meanwhile.
        with pytest.raises(AssertionError, match=r"Connection': [12]\d"):
            check_forgotten(stay, visits=20, seconds=0)
