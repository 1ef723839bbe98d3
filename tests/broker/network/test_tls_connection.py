"""A connection over TLS by itself: what a turn leaves behind is served in a later one."""

import asyncio
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from lamina.broker.counters import RequestCounters
from lamina.broker.network.admission import Admission
from lamina.broker.network.connection import Connection, Ended, refusal_lines
from lamina.broker.network.hang_ups import HangUps
from lamina.broker.network.tls_connection import TlsConnection
from lamina.broker.requests.request import Client, Request, Response
from lamina.clocks import SYSTEM_CLOCKS
from lamina.wire.frames import SharedBuffers
from tests.broker.network.test_tls_channel import Pair
from tests.tls.raw_records import RawRecords


class Taking:
    """A service without responses, that mutes the client for a moment at every so many requests."""

    def __init__(self, expected: int, mutes_each: int) -> None:
        self.served: list[bytes] = []
        self.muted = 0
        self.is_done = asyncio.Event()
        self._expected = expected
        self._mutes_each = mutes_each

    def serve(self, client: Client, frame: memoryview) -> tuple[Request, Response]:
        self.served.append(bytes(frame))
        request = Request(0, 0, 0, None, client, RequestCounters("Test", 0))
        if not len(self.served) % self._mutes_each:
            self.muted += 1
            request.throttle_ms = 1
        if len(self.served) == self._expected:
            self.is_done.set()
        return request, None

    def sent(self, requests: Sequence[Request], sent_ns: int) -> None:
        """Nothing was."""

    def connection_failed(self) -> None:
        raise AssertionError


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[tuple[Pair, RawRecords]]:
    made = Pair(tmp_path / "keys")
    yield made, RawRecords(tmp_path / "keys")
    made.client.close()


def connection_over(pair: Pair, service: Taking, closed: "asyncio.Future[Connection]") -> TlsConnection:
    loop = asyncio.get_running_loop()
    return TlsConnection(
        loop,
        SYSTEM_CLOCKS,
        pair.channel,
        "peer",
        "X",
        service,
        Admission(64 << 20),
        SharedBuffers(),
        HangUps(loop),
        refusal_lines(),
        1 << 20,
        closed.set_result,
    )


@pytest.mark.parametrize("record_bytes", [1, 3, 100, 5000, 16_384])
@pytest.mark.parametrize("mutes_each", [40, 1_000_000])
@pytest.mark.parametrize("hangs_up", [True, False])
def test_requests_in_records_of_any_size_are_all_served(
    raw: tuple[Pair, RawRecords], record_bytes: int, mutes_each: int, hangs_up: bool
) -> None:
    pair, records = raw
    frames = [struct.pack(">i", n) * (5 + n % 7) for n in range(200)] + [b"x" * 200_000]
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames[: -1 if record_bytes < 100 else None])
    pieces = [stream[at : at + record_bytes] for at in range(0, len(stream), record_bytes)]
    expected = frames[: -1 if record_bytes < 100 else None]

    async def run() -> None:
        loop = asyncio.get_running_loop()
        service, closed = Taking(len(expected), mutes_each), loop.create_future()
        connection = connection_over(pair, service, closed)
        sending = pair.send_raw(b"".join(map(records.data, pieces)))
        connection.start()
        if hangs_up:
            await asyncio.to_thread(sending.join)
            pair.client.close()
            assert await asyncio.wait_for(closed, 30) is connection
        else:
            await asyncio.wait_for(service.is_done.wait(), 30)
            connection.close(Ended.STOP)
        sending.join()
        assert service.served == expected
        assert service.muted == len(expected) // mutes_each

    asyncio.run(run())


def test_a_client_that_says_nothing_and_sends_without_end_is_ended(raw: tuple[Pair, RawRecords]) -> None:
    pair, records = raw

    async def run() -> None:
        closed = asyncio.get_running_loop().create_future()
        connection = connection_over(pair, Taking(1, 1), closed)
        sending = pair.send_raw(b"".join(records.key_update() for _ in range(20_000)))
        connection.start()
        assert await asyncio.wait_for(closed, 30) is connection
        assert connection.ended is Ended.ERROR
        sending.join()

    asyncio.run(run())
