"""A connection by itself, over a pair of sockets."""

import asyncio
import gc
import logging
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence

import pytest

from lamina.broker.counters import RequestCounters
from lamina.broker.network.admission import Admission
from lamina.broker.network.channel import PlainChannel
from lamina.broker.network.connection import Connection, Ended, Service
from lamina.broker.network.hang_ups import HangUps
from lamina.broker.requests.request import Client, Request, Response
from lamina.clocks import SYSTEM_CLOCKS
from lamina.wire.frames import RESTING_BYTES, SharedBuffers


class Failing:
    """A service with a fault."""

    faults = 0

    def serve(self, client: Client, frame: memoryview) -> tuple[Request, Response]:
        raise RuntimeError("no such luck")

    def sent(self, requests: Sequence[Request], sent_ns: int) -> None:
        raise AssertionError("nothing was answered")

    def connection_failed(self) -> None:
        self.faults += 1


def connection_over(
    ours: socket.socket,
    service: Service,
    admission: Admission,
    max_frame_bytes: int,
    closed: Callable[[Connection], None],
) -> Connection:
    return Connection(
        asyncio.get_running_loop(),
        SYSTEM_CLOCKS,
        PlainChannel(ours),
        "peer",
        "X",
        service,
        admission,
        SharedBuffers(),
        HangUps(asyncio.get_running_loop()),
        max_frame_bytes,
        closed,
    )


def test_a_fault_of_ours_ends_the_connection_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    failing = Failing()

    async def run() -> bytes:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        closed = loop.create_future()
        connection = connection_over(ours, failing, Admission(1 << 20), 1 << 20, closed.set_result)
        connection.start()
        with theirs:
            await loop.sock_sendall(theirs, struct.pack(">i", 1) + b"x")
            assert await closed is connection
            assert connection.ended is Ended.FAILURE
            return await loop.sock_recv(theirs, 1)

    with caplog.at_level(logging.ERROR):
        assert asyncio.run(run()) == b""
    assert failing.faults == 1
    assert "peer" in caplog.text
    assert "no such luck" in caplog.text


def test_a_large_request_that_does_not_arrive_is_stalled_after_a_while() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        admission = Admission(64 << 20)
        connection = connection_over(ours, Failing(), admission, 32 << 20, lambda _: None)
        connection.start()
        with theirs:
            assert not connection.is_stalled(loop.time() + 1000), "nothing was announced"
            await loop.sock_sendall(theirs, struct.pack(">i", 20 << 20) + b"x")
            while not admission.held_bytes:
                await loop.sock_sendall(theirs, b"x")
                await asyncio.sleep(0)
            assert not connection.is_stalled(loop.time() + 20), "20 MiB may take 30 s"
            assert connection.is_stalled(loop.time() + 40)
        connection.close(Ended.STOP)
        assert admission.held_bytes == 0

    asyncio.run(run())


class Slow:
    """A service that lets the first request wait until it is told to answer."""

    def __init__(self) -> None:
        self.served: list[bytes] = []
        self.may_answer = asyncio.Event()

    def serve(self, client: Client, frame: memoryview) -> tuple[Request, Response | Awaitable[Response]]:
        request = Request(0, 0, 0, None, client, RequestCounters("Test", 0))
        self.served.append(bytes(frame))
        if len(self.served) > 1:
            return request, [bytearray(b"answer")]
        return request, self._wait()

    async def _wait(self) -> Response:
        await self.may_answer.wait()
        return [bytearray(b"answer")]

    def sent(self, requests: Sequence[Request], sent_ns: int) -> None:
        """Nothing is counted here."""

    def connection_failed(self) -> None:
        raise AssertionError


@pytest.mark.parametrize("resets", [False, True])
def test_what_a_client_sent_before_it_went_away_is_served_to_the_end(resets: bool) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        service, closed = Slow(), loop.create_future()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            theirs = socket.create_connection(listening.getsockname())
            ours, _ = listening.accept()
        ours.setblocking(False)
        connection = connection_over(ours, service, Admission(1 << 20), 1 << 20, closed.set_result)
        connection.start()
        theirs.sendall(b"".join(struct.pack(">i", 1) + bytes([number]) for number in range(5)))
        while not service.served:
            await asyncio.sleep(0)
        if resets:
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        theirs.close()
        while connection._gone is None:
            await asyncio.sleep(0)
        assert not closed.done(), "a request is under way"
        service.may_answer.set()
        assert await asyncio.wait_for(closed, 10) is connection
        assert service.served == [bytes([number]) for number in range(5)]
        assert connection.ended in ((Ended.ERROR,) if resets else (Ended.CLIENT, Ended.ERROR))

    asyncio.run(run())


def test_a_connection_that_waits_holds_a_few_bytes_only() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        service = Slow()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        connection = connection_over(ours, service, Admission(1 << 20), 1 << 20, lambda _: None)
        connection.start()
        with theirs:
            await loop.sock_sendall(theirs, struct.pack(">i", 1) + b"x" + struct.pack(">i", 100) + b"a part")
            while not service.served:
                await asyncio.sleep(0)
            assert connection._frames.buffer_bytes <= RESTING_BYTES
            service.may_answer.set()
            assert await loop.sock_recv(theirs, 100) == b"answer"
            await loop.sock_sendall(theirs, b"y" * 94)
            while len(service.served) < 2:
                await asyncio.sleep(0)
            assert service.served[1] == b"a part" + b"y" * 94
            assert connection._frames.buffer_bytes <= RESTING_BYTES
        connection.close(Ended.STOP)

    asyncio.run(run())


def test_a_connection_that_is_closed_before_its_request_begins_leaves_no_coroutine_behind() -> None:
    """Python would warn of one, and warnings are errors here."""

    async def run() -> None:
        service = Slow()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            connection = connection_over(ours, service, Admission(1 << 20), 1 << 20, lambda _: None)
            theirs.sendall(struct.pack(">i", 1) + b"x")
            connection._readable()
            connection.close(Ended.STOP)
            for _ in range(3):
                await asyncio.sleep(0)

    asyncio.run(run())
    gc.collect()
