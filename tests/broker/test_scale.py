"""Many partitions, many connections, and clients that send much and read nothing."""

import resource
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID

import pytest

from lamina.errors import ErrorCode
from lamina.wire.codec import encode_request
from lamina.wire.versions import request_schema
from tests.broker.process import BrokerProcess, eventually
from tests.broker.raw import (
    BEYOND_PATIENCE_MS,
    FETCH,
    FETCH_VERSION,
    METADATA,
    RawClient,
    batch_of,
    fetch_request,
    metadata_request,
)

MEBIBYTE = 1024 * 1024
TOPIC = "wide"
PARTITIONS = 1000


@pytest.fixture(scope="module", autouse=True)
def many_descriptors() -> Iterator[None]:
    """For the test's own side; the broker sees to its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def wide_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    arguments = ("--set", f"num.partitions={PARTITIONS}")
    with BrokerProcess(tmp_path_factory.mktemp("wide"), *arguments) as process:
        yield process
    assert not [line for line in process.log if "Traceback" in line], process.log


@pytest.fixture(scope="module")
def wide_topic(wide_broker: BrokerProcess) -> UUID:
    with RawClient(wide_broker) as client:
        return client.create_topic(TOPIC)


def one(value: bytes = b"value") -> bytes:
    return batch_of((b"key", value), now_ms=time.time_ns() // 1_000_000)


def test_the_broker_raises_its_descriptor_limit_and_says_what_it_allows(wide_broker: BrokerProcess) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert wide_broker.facts["open_files_limit"] == hard
    limits = Path(f"/proc/{wide_broker.pid}/limits").read_text()
    assert any(line.split()[3:5] == [str(hard), str(hard)] for line in limits.splitlines() if "open files" in line)


def test_a_thousand_partitions_and_two_hundred_connections(wide_broker: BrokerProcess, wide_topic: UUID) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(wide_broker)) for _ in range(200)]
        for number, client in enumerate(clients):
            client.begin(fetch_request([(wide_topic, [(5 * number, 0)])], max_wait_ms=60_000))
        with RawClient(wide_broker) as producer:
            for number in range(200):
                assert producer.produce(TOPIC, one(), partition=5 * number).base_offset == 0
        for number, client in enumerate(clients):
            answer = client.answer(FETCH, FETCH_VERSION).responses[0].partitions[0]
            assert (answer.partition_index, answer.high_watermark) == (5 * number, 1)


def test_a_session_with_500_partitions_tells_only_news(wide_broker: BrokerProcess, wide_topic: UUID) -> None:
    with RawClient(wide_broker) as client:
        asked = [(wide_topic, [(2 * number + 1, 0) for number in range(500)])]
        begun = client.ask(fetch_request(asked, session_epoch=0))
        assert len(begun.responses[0].partitions) == 500
        session = begun.session_id
        assert session != 0

        def go_on(epoch: int, *changed: tuple[int, int], forget: tuple[int, ...] = ()) -> list[int]:
            """The partitions that are told of."""
            answer = client.ask(
                fetch_request(
                    [(wide_topic, changed)] if changed else [],
                    session_id=session,
                    session_epoch=epoch,
                    forgotten=[(wide_topic, forget)] if forget else [],
                )
            )
            assert (answer.error_code, answer.session_id) == (0, session)
            return [partition.partition_index for response in answer.responses for partition in response.partitions]

        quiet = set(go_on(1)) - {5 * number for number in range(200)}
        assert not quiet, "records that the client has not taken are told again; the rest is silent"
        silent = 3
        client.produce(TOPIC, one(), partition=silent)
        assert silent in go_on(2)
        assert silent not in go_on(3, (silent, 1))
        client.produce(TOPIC, one(), partition=silent)
        assert silent not in go_on(4, forget=(silent,))
        closed = client.ask(fetch_request([], session_id=session, session_epoch=-1))
        assert closed.session_id == 0
        again = client.ask(fetch_request([], session_id=session, session_epoch=5))
        assert again.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_answers_of_a_client_that_does_not_read_are_bounded(wide_broker: BrokerProcess, wide_topic: UUID) -> None:
    """A buffer full of small requests with large answers must not become a heap full of answers."""
    requests = 3000
    every = encode_request(request_schema(METADATA, 1)(topics=None), 1, "lazy")
    before = wide_broker.peak_bytes()
    with RawClient(wide_broker) as lazy:
        lazy.send(bytes(every) * requests)
        with RawClient(wide_broker) as other:
            assert other.ask(metadata_request()).topics == ()
        for _ in range(requests):
            assert len(lazy.receive_frame()) > 20_000
    assert wide_broker.peak_bytes() - before < 8 * MEBIBYTE


def test_500_clients_that_announce_100_mb_and_stall(wide_broker: BrokerProcess, wide_topic: UUID) -> None:
    """Memory stays under the limit and 64 MB, and another client works on (queued.max.request.bytes)."""
    before = wide_broker.resident_bytes()
    announced = struct.pack(">i", 100_000_000) + b"\0" * 70_000
    with ExitStack() as stack:
        for _ in range(500):
            stalled = stack.enter_context(RawClient(wide_broker))
            stalled.socket.settimeout(60)
            stalled.send(announced)
        with RawClient(wide_broker) as worker:
            for number in range(50):
                answer = worker.produce(TOPIC, one(bytes(500_000)), partition=number)
                assert answer.error_code == 0
                assert worker.fetch(wide_topic, answer.base_offset, partition=number).records
        assert wide_broker.peak_bytes() < 256 * MEBIBYTE + 64_000_000
        assert wide_broker.resident_bytes() - before < 256 * MEBIBYTE
    eventually(lambda: wide_broker.resident_bytes() - before < 64 * MEBIBYTE)


def test_two_clients_that_fill_what_they_announced_and_stall(wide_broker: BrokerProcess, wide_topic: UUID) -> None:
    """The worst that is admitted: frames that are there but for a byte."""
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(wide_broker)) for _ in range(6)]
        for client in clients[:2]:
            client.send(struct.pack(">i", 100 * MEBIBYTE) + bytes(100 * MEBIBYTE - 1))
        for client in clients[2:]:
            client.send(struct.pack(">i", 100 * MEBIBYTE) + bytes(70_000))
        with RawClient(wide_broker) as worker:
            assert worker.produce(TOPIC, one(bytes(900_000)), partition=999).error_code == 0
        assert wide_broker.peak_bytes() < 256 * MEBIBYTE + 64_000_000


def test_large_requests_leave_no_memory_behind(wide_broker: BrokerProcess, wide_topic: UUID) -> None:
    """Connections that once sent much and are idle now hold next to nothing."""
    before = wide_broker.resident_bytes()
    huge, large = one(bytes(40 * MEBIBYTE)), one(bytes(1_000_000))
    with ExitStack() as stack:
        for _ in range(6):
            client = stack.enter_context(RawClient(wide_broker))
            assert client.produce(TOPIC, huge).error_code == ErrorCode.MESSAGE_TOO_LARGE
        for number in range(120):
            client = stack.enter_context(RawClient(wide_broker))
            assert client.produce(TOPIC, large, partition=number).error_code == ErrorCode.NONE
        assert wide_broker.resident_bytes() - before < 64 * MEBIBYTE


def test_a_client_that_went_silent_is_given_up_and_its_memory_with_it(own_broker: Callable[..., BrokerProcess]) -> None:
    """Two stalled requests fill what large ones may take; a third is served once they are given up."""
    broker = own_broker("--set", "connections.max.idle.ms=3000", "--set", "queued.max.request.bytes=120000000")
    large = one(bytes(30_000_000))
    with RawClient(broker) as stalled, RawClient(broker) as waiting:
        topic_id = waiting.create_topic(TOPIC)
        waiting.begin(fetch_request([(topic_id, [(0, 0)])], max_wait_ms=6000))
        stalled.send(struct.pack(">i", 100_000_000) + bytes(70_000))
        with RawClient(broker) as third:
            answer = third.produce(TOPIC, large)
        assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
        assert stalled.is_closed()
        assert "silence" in broker.wait_for_log(stalled.peer)
        assert waiting.answer(FETCH, FETCH_VERSION).error_code == 0, "who waits for an answer is not silent"


def test_two_hundred_parked_connections_do_not_hold_up_a_stop(own_broker: Callable[..., BrokerProcess]) -> None:
    broker = own_broker("--set", "num.partitions=10")
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(broker)) for _ in range(200)]
        topic_id = clients[0].create_topic(TOPIC)
        for number, client in enumerate(clients):
            client.produce(TOPIC, one(), partition=number % 10)
            client.begin(
                fetch_request([(topic_id, [(number % 10, 0)])], max_wait_ms=BEYOND_PATIENCE_MS, min_bytes=1 << 20)
            )
        with RawClient(broker) as last:
            last.ask(metadata_request())
        broker.stop()
        for client in clients:
            assert client.answer(FETCH, FETCH_VERSION).responses[0].partitions[0].records
    assert not [line for line in broker.log if "Traceback" in line], broker.log
    broker.start()
    assert broker.facts["recovered_partitions"] == 0
    with RawClient(broker) as client:
        assert client.list_offset(TOPIC, -1).offset == 20
