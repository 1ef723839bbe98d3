"""A connection by itself, over a pair of sockets."""

import asyncio
import contextlib
import gc
import logging
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator, Sequence

import pytest

from lamina.broker.counters import RequestCounters
from lamina.broker.network.admission import Admission
from lamina.broker.network.channel import PlainChannel
from lamina.broker.network.connection import Connection, Ended, Service, refusal_lines
from lamina.broker.network.hang_ups import HangUps
from lamina.broker.network.refusal_lines import RefusalLines
from lamina.broker.requests.later_response import LaterResponse
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
    refusals: RefusalLines | None = None,
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
        refusals or refusal_lines(),
        max_frame_bytes,
        closed,
    )


@pytest.mark.parametrize("refuse", [Connection.refuse, Connection.refuse_after_response])
def test_many_strangers_who_are_refused_do_not_fill_the_log(
    refuse: Callable[[Connection, str], None], caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        lines = RefusalLines(logging.getLogger("lamina"), seconds_between=600)
        for _ in range(100):
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            with theirs:
                connection = connection_over(ours, Failing(), Admission(1 << 20), 1 << 20, lambda _: None, lines)
                refuse(connection, "no")
                connection.close(Ended.STOP)
                assert connection.ended is Ended.REFUSED

    asyncio.run(run())
    assert caplog.messages == ["peer: no"]


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


class Later:
    """A service whose first response is made when it is told to."""

    def __init__(self) -> None:
        self.served: list[bytes] = []
        self.given_up = 0
        self.later = LaterResponse(asyncio.get_running_loop())
        self.later.give_up = self._give_up

    def _give_up(self) -> None:
        self.given_up += 1

    def serve(self, client: Client, frame: memoryview) -> tuple[Request, Response | Awaitable[Response]]:
        self.served.append(bytes(frame))
        request = Request(0, 0, 0, None, client, RequestCounters("Test", 0))
        return request, self.later if len(self.served) == 1 else [bytearray(b"second")]

    def finish(self) -> None:
        self.later.finish(lambda: [bytearray(b"first")])

    def sent(self, requests: Sequence[Request], sent_ns: int) -> None:
        """Nothing is counted here."""

    def connection_failed(self) -> None:
        raise AssertionError


@contextlib.contextmanager
def connected(service: Service) -> Iterator[tuple[Connection, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    connection = connection_over(ours, service, Admission(1 << 20), 1 << 20, lambda _: None)
    connection.start()
    with theirs:
        yield connection, theirs
    connection.close(Ended.STOP)


def test_a_later_response_leaves_at_once_and_what_came_behind_it_is_served_in_the_next_turn() -> None:
    async def run() -> None:
        service = Later()
        with connected(service) as (connection, theirs):
            theirs.sendall(frames(b"1", b"2"))
            while not service.served:
                await asyncio.sleep(0)
            service.finish()
            assert theirs.recv(100) == b"first"
            assert service.served == [b"1"]
            assert connection.requests == 1
            assert await asyncio.get_running_loop().sock_recv(theirs, 100) == b"second"
            assert service.served == [b"1", b"2"]

    asyncio.run(run())


def test_after_a_later_response_the_connection_is_read_as_before() -> None:
    async def run() -> None:
        service = Later()
        with connected(service) as (_, theirs):
            for number in range(3):
                theirs.sendall(frames(b"%d" % number))
                while len(service.served) == number:
                    await asyncio.sleep(0)
                if number == 0:
                    service.finish()
                assert await asyncio.get_running_loop().sock_recv(theirs, 100) == (b"second" if number else b"first")

    asyncio.run(run())


def test_a_connection_that_is_closed_gives_up_a_later_response() -> None:
    async def run() -> None:
        service = Later()
        with connected(service) as (connection, theirs):
            theirs.sendall(frames(b"1"))
            while not service.served:
                await asyncio.sleep(0)
            connection.close(Ended.STOP)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert service.given_up == 1
            service.finish()

    asyncio.run(run())


@pytest.mark.parametrize("is_draining", [True, False])
def test_a_connection_that_drains_or_whose_client_is_gone_ends_after_its_later_response(*, is_draining: bool) -> None:
    async def run() -> None:
        service = Later()
        with connected(service) as (connection, theirs):
            theirs.sendall(frames(b"1"))
            while not service.served:
                await asyncio.sleep(0)
            if is_draining:
                connection.drain()
            else:
                theirs.close()
                while connection._gone is None:
                    await asyncio.sleep(0)
            service.finish()
            while connection.ended is None:
                await asyncio.sleep(0)
            assert connection.ended in ((Ended.STOP,) if is_draining else (Ended.CLIENT, Ended.ERROR))

    asyncio.run(run())


# Muting (S63)

FOR_EVER_MS = 86_400_000


class Throttling:
    """A service that tells clients to wait: as long as it has times for their requests."""

    def __init__(self, *throttle_ms: int, is_answered: bool = True, is_late: bool = False) -> None:
        self.served: list[bytes] = []
        self._throttle_ms = throttle_ms
        self._is_answered = is_answered
        self._is_late = is_late

    def serve(self, client: Client, frame: memoryview) -> tuple[Request, Response | Awaitable[Response]]:
        request = Request(0, 0, 0, None, client, RequestCounters("Test", 0))
        if len(self.served) < len(self._throttle_ms):
            request.throttle_ms = self._throttle_ms[len(self.served)]
        self.served.append(bytes(frame))
        response: Response = [bytearray(b"answer")] if self._is_answered else None
        return request, self._respond(response) if self._is_late else response

    async def _respond(self, response: Response) -> Response:
        await asyncio.sleep(0)
        return response

    def sent(self, requests: Sequence[Request], sent_ns: int) -> None:
        """Nothing is counted here."""

    def connection_failed(self) -> None:
        raise AssertionError


def frames(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


class Muting:
    """A client of such a service, in one loop with it."""

    def __init__(self, service: Throttling) -> None:
        self.service = service
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.client = socket.create_connection(listening.getsockname())
            ours, _ = listening.accept()
        ours.setblocking(False)
        self.client.setblocking(False)
        self.closed: asyncio.Future[Connection] = loop.create_future()
        self.connection = connection_over(ours, service, Admission(1 << 20), 1 << 20, self.closed.set_result)
        self.connection.start()

    async def until_served(self, count: int) -> None:
        while len(self.service.served) < count:
            await asyncio.sleep(0)

    async def turns(self) -> None:
        """Let the loop look at its sockets a few times."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def answer(self) -> bytes:
        return await asyncio.get_running_loop().sock_recv(self.client, 100)

    def end(self) -> None:
        self.client.close()
        self.connection.close(Ended.STOP)


@pytest.mark.parametrize("is_late", [False, True])
def test_an_answer_leaves_at_once_and_then_nothing_more_is_served_for_so_long(is_late: bool) -> None:
    async def run() -> None:
        muting = Muting(Throttling(30, is_late=is_late))
        began = asyncio.get_running_loop().time()
        muting.client.sendall(frames(b"1", b"2"))
        assert await muting.answer() == b"answer"
        assert muting.service.served == [b"1"]
        assert muting.connection.is_muted
        assert muting.connection.is_waiting, "so that it is not closed as idle"
        muting.client.sendall(frames(b"3"))
        await muting.until_served(3)
        assert asyncio.get_running_loop().time() - began >= 0.03
        assert muting.service.served == [b"1", b"2", b"3"]
        assert not muting.connection.is_muted
        muting.end()

    asyncio.run(run())


def test_a_muted_client_without_answers_is_read_no_more() -> None:
    """acks=0: the system's buffers fill, and then the client has to wait."""

    async def run() -> None:
        muting = Muting(Throttling(FOR_EVER_MS, is_answered=False))
        muting.client.sendall(frames(b"1"))
        await muting.until_served(1)
        muting.client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        sent = 0
        with contextlib.suppress(BlockingIOError):
            while sent < 100 << 20:
                sent += muting.client.send(frames(b"x" * 10_000))
        assert sent < 100 << 20
        await muting.turns()
        assert muting.service.served == [b"1"]
        assert muting.connection.bytes_in == 5
        muting.end()

    asyncio.run(run())


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("resets", [False, True])
def test_a_muted_client_that_hangs_up_is_gone(resets: bool, is_late: bool) -> None:
    async def run() -> None:
        muting = Muting(Throttling(FOR_EVER_MS, is_late=is_late))
        muting.client.sendall(frames(b"1"))
        assert await muting.answer() == b"answer"
        if resets:
            muting.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        muting.client.close()
        assert await asyncio.wait_for(muting.closed, 10) is muting.connection
        assert muting.connection.ended in (Ended.CLIENT, Ended.ERROR)

    asyncio.run(run())


def test_a_client_that_hangs_up_before_it_is_muted_is_gone() -> None:
    async def run() -> None:
        muting = Muting(Throttling(FOR_EVER_MS, is_late=True))
        muting.client.sendall(frames(b"1"))
        muting.client.close()
        assert await asyncio.wait_for(muting.closed, 10) is muting.connection
        assert muting.service.served == [b"1"]

    asyncio.run(run())


@pytest.mark.parametrize("is_received", [False, True])
def test_what_a_client_sent_before_it_hung_up_is_served_once_it_is_muted_no_more(is_received: bool) -> None:
    """Else whoever hangs up and comes again would have no quota."""

    async def run() -> None:
        muting = Muting(Throttling(30, 30, is_answered=False))
        began = asyncio.get_running_loop().time()
        muting.client.sendall(frames(b"1", b"2", b"3") if is_received else frames(b"1"))
        if not is_received:
            await muting.until_served(1)
            muting.client.sendall(frames(b"2", b"3"))
        muting.client.close()
        assert await asyncio.wait_for(muting.closed, 10) is muting.connection
        assert muting.service.served == [b"1", b"2", b"3"]
        assert asyncio.get_running_loop().time() - began >= 0.06

    asyncio.run(run())


def test_a_muted_connection_is_drained_at_once() -> None:
    async def run() -> None:
        muting = Muting(Throttling(FOR_EVER_MS))
        muting.client.sendall(frames(b"1"))
        assert await muting.answer() == b"answer"
        muting.connection.drain()
        assert muting.closed.done()
        muting.client.close()

    asyncio.run(run())
