"""A broker without sockets: requests are encoded, served by the router, and their answers parsed."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sized
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from lamina.broker.assembly import build_parts
from lamina.broker.coordination.broker_batches import AskBroker, nobody_else
from lamina.broker.parts import Parts
from lamina.broker.requests.request import ANONYMOUS, Request, Response
from lamina.clocks import Clocks
from lamina.errors import KafkaError
from lamina.image.changes import set_partitions
from lamina.image.features import SUPPORTED
from lamina.image.image import Broker, Image
from lamina.log.lease import Lease
from lamina.records.record import Record, build_batch
from lamina.settings.listeners import Listener
from lamina.settings.resolve import resolve_broker
from lamina.storage import open_storage
from lamina.wire.api_keys import FETCH
from lamina.wire.codec import SIZE_BYTES, encode_request, parse_response
from lamina.wire.fetch_request import FetchRequest
from lamina.wire.fields import Entity, Field, fields_of
from lamina.wire.versions import request_schema
from tests.driven_clock import DrivenClock

FEW_PARTITIONS = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
"""With as many as Kafka has, a test that needs a coordinator makes and closes 100 logs: ten times its own work."""
CORRELATION_ID = 7
PRODUCE = 0
PRODUCE_VERSION = 9
CONSUMER = {"replica_id": -1}
"""Who asks, unless a test says that a broker does."""


@dataclass
class NoSocket:
    """What handlers look at of a connection."""

    id: int = 0
    peer: str = "a test"
    host: str = "127.0.0.1"
    listener_name: str = "PLAINTEXT"
    principal: str = ANONYMOUS
    client_software: str = ""
    gone: list[Callable[[], None]] = field(default_factory=list)
    """Told when it hangs up."""

    def when_gone(self, told: Callable[[], None]) -> None:
        self.gone.append(told)


class InProcessBroker:
    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str],
        clocks: Clocks | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        ask_broker: AskBroker = nobody_else,
    ) -> None:
        """``loop`` is given where several brokers share one; it stays open then."""
        self._given = {"lamina.data.dir": str(directory), **FEW_PARTITIONS, **settings}
        self._shared_loop = loop
        self._ask_broker = ask_broker
        self.clock = DrivenClock()
        self.principal = ANONYMOUS
        """Who asks."""
        self._clocks = clocks or self.clock.clocks
        self.parts = self._open()

    def _open(self) -> Parts:
        self._loop = self._shared_loop or asyncio.new_event_loop()
        try:
            settings = resolve_broker(sets=self._given)
            storage = open_storage(settings)
            parts = build_parts(self._loop, settings, storage, self._fatal, self._clocks, ask_broker=self._ask_broker)
            self._prepare(parts)
            endpoint = Listener("PLAINTEXT", "PLAINTEXT", "broker.test", 9092)
            broker = Broker(parts.metadata.node_id, {"PLAINTEXT": endpoint}, "here", features=SUPPORTED)
            try:
                self._loop.run_until_complete(parts.start(broker))
            except BaseException:
                parts.threads.close()
                storage.release()
                raise
        except BaseException:
            self._close_loop()
            raise
        return parts

    def _prepare(self, parts: Parts) -> None:
        """For those that change a part before the broker starts."""

    def _fatal(self, reason: str) -> None:
        """In a server, the broker would end here."""

    def close(self) -> None:
        self._loop.run_until_complete(self.parts.verification.close())
        self._loop.run_until_complete(self.parts.transactions.close())
        self.parts.groups.runtime.close()
        self._loop.run_until_complete(self.parts.moves.stop())
        self._loop.run_until_complete(self.parts.kernel_loading.stop())
        for directory in self.parts.directories:
            directory.close()
        self.parts.storage.database.close()
        self.parts.threads.close()
        self._close_loop()

    def _close_loop(self) -> None:
        if self._shared_loop is None:
            self._loop.close()

    def restart(self, **settings: str) -> None:
        """Stop cleanly and start again on the same files."""
        self.close()
        self._given |= settings
        self.start()

    def start(self) -> None:
        """Start again after :meth:`close`."""
        self.parts = self._open()

    def settle(self) -> None:
        """Let the coordinators load, commit what they decided, and write every marker that can be written."""
        parts = self.parts
        coordinators = (parts.groups.runtime, parts.transactions.runtime)

        def is_busy() -> bool:
            is_loading = any(
                shard.machine is None and not shard.is_given_up for runtime in coordinators for shard in runtime
            )
            return is_loading or bool(parts.transactions.markers.pending)

        self.run_until(lambda: not is_busy())
        # Markers are sent once what was decided is committed.
        for shard in [shard for runtime in coordinators for shard in runtime if shard.machine is not None]:
            with suppress(KafkaError):
                self._loop.run_until_complete(shard.committed())
        self.run_until(lambda: not is_busy())

    def run_until(self, holds: Callable[[], bool]) -> None:
        """Let the broker work on its own, with no request, until something is so."""
        deadline = self._loop.time() + 30
        while not holds():
            assert self._loop.time() < deadline, "it never came true"
            self._loop.run_until_complete(asyncio.sleep(0.001))

    def ask(self, api_key: int, api_version: int, **facts: Any) -> Any:
        """The answer to a request; what its version does not carry is left out, what is not said is empty."""
        request = build(request_schema(api_key, api_version), CONSUMER | facts)
        frame = encode_request(request, CORRELATION_ID, "test")
        answer = self.serve(frame[SIZE_BYTES:])
        assert answer is not None
        correlation_id, response = parse_response(api_key, api_version, answer[SIZE_BYTES:])
        assert correlation_id == CORRELATION_ID
        return response

    def begin(self, api_key: int, api_version: int, **facts: Any) -> "asyncio.Task[Any]":
        """A request whose answer is waited for later, with :meth:`finish`."""
        frame = encode_request(build(request_schema(api_key, api_version), CONSUMER | facts), CORRELATION_ID, "test")
        _, served = self.parts.router.serve(NoSocket(principal=self.principal), memoryview(frame[SIZE_BYTES:]))

        async def answered() -> Any:
            pieces = await served if isinstance(served, Awaitable) else served
            assert pieces is not None
            answer = b"".join(_taken(piece) for piece in pieces)
            return parse_response(api_key, api_version, answer[SIZE_BYTES:])[1]

        return self._loop.create_task(answered())

    def finish(self, begun: Awaitable[Any], seconds: float = 30) -> Any:
        return self._loop.run_until_complete(asyncio.wait_for(begun, seconds))

    def set_partition(self, topic: str, index: int, **state: Any) -> None:
        """Have the metadata say something else of a partition: its leader, its epoch, its in-sync set."""

        def change(image: Image) -> Image:
            return set_partitions(image, {(topic, index): replace(image.partition(topic, index), **state)})

        self.change(change)

    def change(self, change: Callable[[Image], Image]) -> None:
        """Have the metadata say something else."""
        self._loop.run_until_complete(self.parts.metadata.change(change))

    def wait(self, response: Awaitable[Response]) -> Response:
        """For a request that was given to the router."""
        return self._loop.run_until_complete(asyncio.wait_for(_awaited(response), 30))

    def turn(self) -> None:
        """Let the loop go round once."""
        self._loop.run_until_complete(asyncio.sleep(0))

    def serve(self, frame: bytearray, wait_seconds: float | None = None) -> bytes | None:
        """The whole answer to a frame; ``None`` where there is none, or where the client gives up waiting."""
        _, served = self.parts.router.serve(NoSocket(principal=self.principal), memoryview(frame))
        if isinstance(served, Awaitable):
            try:
                served = self._loop.run_until_complete(asyncio.wait_for(_awaited(served), wait_seconds))
            except TimeoutError:
                return None
        if served is None:
            return None
        answer = b"".join(_taken(piece) for piece in served)
        assert int.from_bytes(answer[:SIZE_BYTES], "big") == len(answer) - SIZE_BYTES
        return answer

    def fetch(self, request: Request, message: FetchRequest) -> Response | Awaitable[Response]:
        """What the handler of Fetch returns, unawaited."""
        return cast(Response | Awaitable[Response], self.parts.router.handler(FETCH)(request, message))

    def produce(self, topic: str, count: int, partition: int = 0) -> int:
        """Append one batch of ``count`` records. Returns its first offset."""
        partition_data = {"index": partition, "records": batch_of(self, count)}
        response = self.ask(
            PRODUCE, PRODUCE_VERSION, acks=-1, topic_data=[{"name": topic, "partition_data": [partition_data]}]
        )
        produced = response.responses[0].partition_responses[0]
        assert produced.error_code == 0
        return int(produced.base_offset)

    def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Make a topic; underscores in the names of configs stand for dots."""
        given = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
        topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": given}
        response = self.ask(19, 7, topics=[topic])
        assert response.topics[0].error_code == 0, response.topics[0].error_message

    def delete(self, name: str) -> None:
        response = self.ask(20, 6, topics=[{"name": name}])
        assert response.responses[0].error_code == 0


def counted_turns(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """One entry for each time that the loop is left to others, from now on."""
    turns: list[float] = []
    sleep = asyncio.sleep

    async def count(seconds: float) -> None:
        turns.append(seconds)
        await sleep(seconds)

    monkeypatch.setattr(asyncio, "sleep", count)
    return turns


def joined(pieces: Response) -> bytes:
    """What goes over the wire; ranges of files are read and given back."""
    parts = []
    for piece in pieces or ():
        if isinstance(piece, Lease):
            with piece:
                parts.append(piece.read())
        else:
            parts.append(bytes(cast(bytes, piece)))
    return b"".join(parts)


def batch_of(broker: InProcessBroker, count: int) -> bytes:
    now_ms = broker.parts.clocks.now_ms()
    return bytes(build_batch([Record(number, now_ms, b"key", b"value") for number in range(count)]))


def _taken(piece: Sized) -> bytes:
    if not isinstance(piece, Lease):
        return cast(bytes, piece)
    with piece:
        return piece.read()


async def _awaited(answer: Awaitable[Response]) -> Response:
    return await answer


def build(schema: type[Entity], facts: Mapping[str, Any]) -> Any:
    return schema(**{field.name: _value(field, facts.get(field.name, _empty(field))) for field in fields_of(schema)})


def _value(field: Field, fact: Any) -> Any:
    if field.entity is None or fact is None:
        return tuple(fact) if field.is_array and fact is not None else fact
    if field.is_array:
        return tuple(build(field.entity, one) for one in fact)
    return build(field.entity, fact)


def _empty(field: Field) -> Any:
    if field.nullable or field.wire_type == "uuid":
        return None
    if field.is_array:
        return ()
    if field.entity is not None:
        return {}
    return {"string": "", "bytes": b"", "bool": False}.get(field.wire_type, 0)
