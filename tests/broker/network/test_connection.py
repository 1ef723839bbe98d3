"""A connection by itself, over a pair of sockets."""

import asyncio
import logging
import socket
import struct
from collections.abc import Sequence

import pytest

from lamina.broker.network.admission import Admission
from lamina.broker.network.connection import Connection, Ended
from lamina.broker.network.service import Answer
from lamina.broker.requests.router import Request


class Failing:
    """A service with a fault."""

    faults = 0

    def serve(self, connection: Connection, frame: memoryview) -> Answer:
        raise RuntimeError("no such luck")

    def settle(self, requests: Sequence[Request], sent_ns: int) -> None:
        raise AssertionError("nothing was answered")

    def count_unexpected(self) -> None:
        self.faults += 1


def test_a_fault_of_ours_ends_the_connection_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    failing = Failing()

    async def run() -> bytes:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        closed = loop.create_future()
        connection = Connection(loop, ours, "peer", "X", failing, Admission(1 << 20), 1 << 20, closed.set_result)
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


def test_a_large_request_that_does_not_arrive_dawdles_after_a_while() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        admission = Admission(64 << 20)
        connection = Connection(loop, ours, "peer", "X", Failing(), admission, 32 << 20, lambda _: None)
        connection.start()
        with theirs:
            assert not connection.is_dawdling(loop.time() + 1000), "nothing was announced"
            await loop.sock_sendall(theirs, struct.pack(">i", 20 << 20) + b"x")
            while not admission.held_bytes:
                await loop.sock_sendall(theirs, b"x")
                await asyncio.sleep(0)
            assert not connection.is_dawdling(loop.time() + 20), "20 MiB may take 30 s"
            assert connection.is_dawdling(loop.time() + 40)
        connection.close(Ended.STOP)
        assert admission.held_bytes == 0

    asyncio.run(run())
