"""A TCP proxy between the processes of a cluster: every connection between two parties goes through one of its ports.

Owns ports and connections. A port stands for one receiver. Who connects to it is known beforehand, or by the client id
of the first request: brokers call themselves ``broker-N-…``, everybody else is a client. So one port for each receiver
tells all ordered pairs apart, and needs no privileges. Requests are passed on whole, one after the other, so that one
kind of them can be held up; responses as they come. Runs on a thread of its own. Must not know what is in a request
beyond its header.
"""

import asyncio
import re
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, TypeVar

from lamina.cluster.ports import HOST
from tests.cluster.links import CLIENTS, Link, Links, Party

T = TypeVar("T")

_SIZE, _API_KEY = struct.Struct(">i"), struct.Struct(">h")
_HEADER = struct.Struct(">ihhih")
"""Size, API key, version, correlation id, length of the client id."""
_PIECE_BYTES = 1 << 16
_PIECES_ON_THEIR_WAY = 64
_BROKER = re.compile(r"broker-\d+")
_LINGER_SECONDS = 5.0


class _Piece(NamedTuple):
    data: bytes
    api_key: int | None = None
    """Of a client's request."""


_END = _Piece(b"")


@dataclass
class _Port:
    receiver: Party
    accepted: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
    number: int = 0
    """0 before it has listened for the first time."""
    server: asyncio.Server | None = None
    """``None`` while it refuses who connects."""

    async def listen(self) -> None:
        if self.server is None:
            self.server = await asyncio.start_server(self.accepted, HOST, self.number)
            self.number = int(self.server.sockets[0].getsockname()[1])

    def refuse(self) -> None:
        if self.server is not None:
            self.server.close()
            self.server = None


class Proxy:
    """As a context: its thread lives as long, and its connections end with it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._links = Links()
        self._ports: list[_Port] = []
        self._connections: set[asyncio.Task[None]] = set()

    def __enter__(self) -> "Proxy":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(_LINGER_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # What tests do to links, from their own thread

    def cut(self, senders: Iterable[Party], receivers: Iterable[Party]) -> None:
        self._do(lambda: self._links.cut(senders, receivers))

    def isolate(self, party: Party, others: Iterable[Party]) -> None:
        """In both directions."""
        others = list(others)
        self.cut([party], others)
        self.cut(others, [party])

    def delay(self, senders: Iterable[Party], receivers: Iterable[Party], seconds: float) -> None:
        self._do(lambda: self._links.delay(senders, receivers, seconds))

    def heal(self) -> None:
        self._do(self._links.heal)

    def hold(self, api_key: int) -> None:
        self._do(lambda: self._links.hold(api_key))

    def let_pass(self) -> None:
        self._do(self._links.let_pass)

    def release(self) -> None:
        self._do(self._links.release)

    def held_requests(self) -> int:
        return self._do(lambda: self._links.held_requests)

    def carried_bytes(self, sender: Party, receiver: Party) -> int:
        return self._do(lambda: self._links.between(sender, receiver).carried_bytes)

    def waiting_bytes(self, sender: Party, receiver: Party) -> int:
        return self._do(lambda: self._links.between(sender, receiver).waiting_bytes)

    def _do(self, act: Callable[[], T]) -> T:
        async def on_the_loop() -> T:
            return act()

        return asyncio.run_coroutine_threadsafe(on_the_loop(), self._loop).result(_LINGER_SECONDS)

    # Ports

    def open_port(self, receiver: Party, target_port: int, sender: Party | None = None) -> int:
        """Returns a port through which a party is reached; ``sender`` is who uses it, unless its requests tell."""

        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._connections.add(task)
            try:
                await self._serve(reader, writer, sender, receiver, target_port)
            except (OSError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.transport.abort()
                self._connections.discard(task)

        port = _Port(receiver, accepted)
        self._listen([port])
        self._ports.append(port)
        return port.number

    def refuse(self, receiver: Party) -> None:
        """Whoever connects to a party is refused, as by a machine whose process is gone; what is connected stays so."""

        def refuse() -> None:
            for port in self._ports:
                if port.receiver == receiver:
                    port.refuse()

        self._do(refuse)

    def accept(self, receiver: Party) -> None:
        """A party can be reached again through the same ports."""
        self._listen([port for port in self._ports if port.receiver == receiver])

    def _listen(self, ports: Iterable[_Port]) -> None:
        async def listen() -> None:
            for port in ports:
                await port.listen()

        asyncio.run_coroutine_threadsafe(listen(), self._loop).result(_LINGER_SECONDS)

    async def _end(self) -> None:
        for port in self._ports:
            port.refuse()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        # Transports are closed in the next turn of the loop.
        await asyncio.sleep(0)

    # Connections

    async def _serve(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        known_sender: Party | None,
        receiver: Party,
        target_port: int,
    ) -> None:
        pieces, sender = _pieces(reader), known_sender
        if sender is None:
            first = await _read_request(reader)
            sender = sender_of(first.data)
            pieces = _requests(first, reader)
        there, back = self._links.between(sender, receiver), self._links.between(receiver, sender)
        # A handshake goes both ways.
        await there.crossed()
        await back.crossed()
        far_reader, far_writer = await asyncio.open_connection(HOST, target_port)
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(self._carry(pieces, far_writer, there, is_from_client=sender == CLIENTS))
                directions.create_task(self._carry(_pieces(far_reader), writer, back, is_from_client=False))
        finally:
            far_writer.transport.abort()

    async def _carry(
        self, pieces: AsyncIterator[_Piece], writer: asyncio.StreamWriter, link: Link, *, is_from_client: bool
    ) -> None:
        """One direction of a connection, to its end. That the receiver is gone is told by the other direction."""
        queue: asyncio.Queue[tuple[_Piece, float]] = asyncio.Queue(_PIECES_ON_THEIR_WAY)
        reading = asyncio.create_task(_read_into(queue, pieces, link))
        try:
            while True:
                piece, read_at = await queue.get()
                if is_from_client and piece.api_key is not None:
                    await self._links.passed(piece.api_key)
                await asyncio.sleep(read_at + link.delay_seconds - self._loop.time())
                await link.crossed()
                link.waiting_bytes -= len(piece.data)
                if not piece.data:
                    writer.write_eof()
                    return
                link.carried_bytes += len(piece.data)
                writer.write(piece.data)
                await writer.drain()
        except OSError:
            pass
        finally:
            reading.cancel()
            # What is not passed on does not wait any more.
            link.waiting_bytes -= sum(len(queue.get_nowait()[0].data) for _ in range(queue.qsize()))


def sender_of(request: bytes) -> Party:
    """Who sent this first request of a connection."""
    *_, length = _HEADER.unpack_from(request)
    client_id = request[_HEADER.size :][: max(length, 0)].decode(errors="replace")
    found = _BROKER.match(client_id)
    return found[0] if found else CLIENTS


async def _read_into(queue: asyncio.Queue[tuple[_Piece, float]], pieces: AsyncIterator[_Piece], link: Link) -> None:
    loop = asyncio.get_running_loop()
    with suppress(OSError, asyncio.IncompleteReadError):
        async for piece in pieces:
            link.waiting_bytes += len(piece.data)
            await queue.put((piece, loop.time()))
    await queue.put((_END, loop.time()))


async def _pieces(reader: asyncio.StreamReader) -> AsyncIterator[_Piece]:
    while data := await reader.read(_PIECE_BYTES):
        yield _Piece(data)


async def _requests(first: _Piece, reader: asyncio.StreamReader) -> AsyncIterator[_Piece]:
    yield first
    while True:
        yield await _read_request(reader)


async def _read_request(reader: asyncio.StreamReader) -> _Piece:
    """Raises IncompleteReadError at the end of the stream: half a request is not passed on."""
    size = await reader.readexactly(_SIZE.size)
    data = size + await reader.readexactly(*_SIZE.unpack(size))
    (api_key,) = _API_KEY.unpack_from(data, _SIZE.size)
    return _Piece(data, api_key)
