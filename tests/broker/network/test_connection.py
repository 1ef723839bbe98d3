"""A connection by itself, over a pair of sockets."""

import asyncio
import logging
import socket
import struct
from collections.abc import Callable, Sequence

import pytest

from lamina.broker.network.admission import Admission
from lamina.broker.network.channel import PlainChannel
from lamina.broker.network.connection import Connection, Ended, Service
from lamina.broker.requests.request import Client, Request, Response
from lamina.clocks import SYSTEM_CLOCKS
from lamina.wire.frames import SharedBuffers


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
