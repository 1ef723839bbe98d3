"""A broker that runs out of descriptors: connections are refused first; logs go on, or can be tried again later."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lamina.errors import ErrorCode
from tests.broker.process import BrokerProcess, eventually
from tests.broker.raw import Closed, RawClient, batch_of

OPEN_FILES = 192
RETRIABLE = (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    # With room for the whole crowd: a client whose packet finds none sends it again a second later.
    backlog = ("--set", f"socket.listen.backlog.size={2 * OPEN_FILES}")
    settings = ("--set", "log.segment.bytes=1048576", "--set", "num.partitions=1", *backlog)
    process = BrokerProcess(tmp_path / "data", *settings)
    process.open_files = OPEN_FILES
    with process:
        yield process
    assert not [line for line in process.log if "offline" in line or "Traceback" in line], process.log


def one(size_bytes: int = 500) -> bytes:
    return batch_of((b"key", b"v" * size_bytes), now_ms=time.time_ns() // 1_000_000)


def test_connections_never_take_what_the_logs_need(broker: BrokerProcess) -> None:
    with RawClient(broker) as client, ExitStack() as crowd:
        topic_id = client.create_topic("t")
        for _ in range(2 * OPEN_FILES):
            crowd.enter_context(broker.connect())
        broker.wait_for_log("the last descriptors are kept for the logs")
        for number in range(40):
            assert client.produce("t", one(300_000)).error_code == ErrorCode.NONE, number
        assert len(list((broker.log_dir / "t-0").glob("*.log"))) > 5, "segments rolled meanwhile"
        assert client.fetch(topic_id, 0).error_code == ErrorCode.NONE
        crowd.close()

        def is_served_again() -> bool:
            try:
                with RawClient(broker) as another:
                    return bool(another.produce("t", one()).error_code == ErrorCode.NONE)
            except (OSError, Closed):
                # Turned away, at once or when it had connected: not all of the crowd is gone yet.
                return False

        eventually(is_served_again)


def test_more_logs_than_descriptors_are_served_as_far_as_they_go(broker: BrokerProcess) -> None:
    with RawClient(broker) as client:
        topics = [f"t{number}" for number in range(70)]
        for topic in topics:
            client.create_topic(topic)
        codes = [client.produce(topic, one()).error_code for topic in topics]
        assert set(codes) == set(RETRIABLE), "some are refused for now"
        written = [topic for topic, code in zip(topics, codes, strict=True) if code == ErrorCode.NONE]
        assert len(written) >= 30
        assert client.produce(written[0], one()).error_code == ErrorCode.NONE
        assert broker.restart() is broker
    with RawClient(broker) as client:
        assert client.produce(topics[-1], one()).error_code == ErrorCode.NONE, "which was refused before"
