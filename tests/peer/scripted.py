"""Brokers that say what a test tells them to, over real sockets: for clusters that do not exist yet."""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from lamina.peer.addresses import Address
from lamina.wire.codec import parse_request
from lamina.wire.headers import parse_request_header
from tests.peer.responses import response_frame

PRODUCE, FETCH, LIST_OFFSETS, METADATA, FIND_COORDINATOR, API_VERSIONS, OFFSET_DELETE = 0, 1, 2, 3, 10, 18, 47
OFFERED = {
    PRODUCE: 12,
    FETCH: 17,
    LIST_OFFSETS: 9,
    METADATA: 13,
    FIND_COORDINATOR: 6,
    API_VERSIONS: 4,
    OFFSET_DELETE: 0,
}

Facts = dict[str, Any]
Answer = Callable[[Any], Facts | None]
"""From a request to the fields of its response; ``None``: no response, ever."""


class ScriptedBroker:
    """Answers by `script`, API key by API key; ApiVersions by itself unless that is scripted."""

    def __init__(self, script: Mapping[int, Answer] | None = None, context: ssl.SSLContext | None = None) -> None:
        """With a ``context`` it speaks TLS."""
        self.script = dict(script or {})
        self._context = context
        self.asked: list[tuple[int, Any]] = []
        """(API key, request) in order, ApiVersions left out."""
        self.connections = 0
        self._writers: list[asyncio.StreamWriter] = []
        self._arrived = asyncio.Condition()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        await self.die()

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", self._server.sockets[0].getsockname()[1])

    async def die(self) -> None:
        """Hang up on everybody, and listen no more."""
        self._server.close()
        self.hang_up()
        await asyncio.sleep(0)

    def hang_up(self) -> None:
        """End every connection."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def until_asked(self, count: int) -> None:
        """Wait for that many requests."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.asked) >= count)

    def keys(self) -> list[int]:
        return [key for key, _ in self.asked]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        try:
            while True:
                frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                header = parse_request_header(frame)
                request = parse_request(header.api_key, header.api_version, frame[header.body_at :])
                facts = await self._answer(header.api_key, request)
                if facts is not None:
                    version = facts.pop("version", header.api_version)
                    writer.write(response_frame(header.api_key, version, header.correlation_id, **facts))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _answer(self, api_key: int, request: Any) -> Facts | None:
        if api_key == API_VERSIONS and API_VERSIONS not in self.script:
            return {"api_keys": versions_facts(OFFERED)}
        async with self._arrived:
            self.asked.append((api_key, request))
            self._arrived.notify_all()
        return self.script[api_key](request)


def versions_facts(newest: Mapping[int, int]) -> list[Facts]:
    return [{"api_key": key, "min_version": 0, "max_version": version} for key, version in newest.items()]
