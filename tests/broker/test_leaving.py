"""Clients that go away while something is being done for them."""

import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.errors import ErrorCode
from tests.broker.in_thread import BrokerInThread
from tests.broker.leaks import check_forgotten
from tests.broker.process import BrokerProcess
from tests.broker.raw import BEYOND_PATIENCE_MS, RawClient, batch_of, fetch_request, metadata_request


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


def test_a_client_that_says_nonsense_is_forgotten(broker_here: BrokerInThread) -> None:
    def talk_nonsense() -> None:
        with RawClient(broker_here) as bad:
            bad.send(struct.pack(">i", 64) + b"\xff" * 64)
            assert bad.is_closed()

    check_forgotten(talk_nonsense, visits=200)


def test_a_client_that_is_kept_would_be_noticed(broker_here: BrokerInThread) -> None:
    kept = []

    def stay() -> None:
        kept.append(RawClient(broker_here))
        kept[-1].ask(metadata_request())

    with pytest.raises(AssertionError, match=r"Connection': 20"):
        check_forgotten(stay, visits=20, seconds=0)
    for client in kept:
        client.socket.close()
