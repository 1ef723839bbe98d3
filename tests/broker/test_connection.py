"""A connection by itself, over a pair of sockets."""

import asyncio
import logging
import socket
import struct

import pytest

from lamina.broker.admission import Admission
from lamina.broker.connection import Answer, Connection


class Failing:
    """A service with a fault."""

    def serve(self, connection: Connection, frame: memoryview) -> Answer:
        raise RuntimeError("no such luck")


def test_a_fault_of_ours_ends_the_connection_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> bytes:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        closed = loop.create_future()
        connection = Connection(loop, ours, "peer", "X", Failing(), Admission(1 << 20), 1 << 20, closed.set_result)
        connection.start()
        with theirs:
            await loop.sock_sendall(theirs, struct.pack(">i", 1) + b"x")
            assert await closed is connection
            return await loop.sock_recv(theirs, 1)

    with caplog.at_level(logging.ERROR):
        assert asyncio.run(run()) == b""
    assert "peer" in caplog.text
    assert "no such luck" in caplog.text
