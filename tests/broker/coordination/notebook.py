"""A machine of the tests' own, on the log of a real partition: what runs it is tested with it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from lamina.broker.coordination.pending import Response
from lamina.broker.coordination.runtime import Runtime
from lamina.broker.coordination.shard_log import RecordFormat
from lamina.coordinators.decision import Decision, Effect, Now, Producer, TimerName, Waiter
from lamina.errors import CorruptMessage, InvalidRequest
from tests.broker.in_process import InProcessBroker

TOPIC = "notes"
Note = tuple[str, str | None]


def encode(note: Note) -> tuple[bytes, bytes | None]:
    key, value = note
    return key.encode(), None if value is None else value.encode()


def decode(key: bytes | None, value: bytes | None) -> Note | None:
    if key is None:
        return None
    if key == b"unreadable":
        raise CorruptMessage("nobody knows what this is")
    return key.decode(), None if value is None else value.decode()


class Notebook:
    """Notes by name; whoever waits for a name is told when it comes, or when its time is over."""

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}
        self.pending: dict[int, list[Note]] = {}
        self.waiting: dict[str, list[Waiter]] = {}
        self.is_loaded = False

    def replay(self, record: Note, producer: Producer | None) -> None:
        name, text = record
        if name == "breaks":
            raise RuntimeError("a fault in replay")
        if producer is not None:
            self.pending.setdefault(producer.id, []).append(record)
        elif text is None:
            self.notes.pop(name, None)
        else:
            self.notes[name] = text

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        for record in self.pending.pop(producer_id, []) if is_committed else ():
            self.replay(record, None)
        self.pending.pop(producer_id, None)

    def loaded(self, now: Now) -> Decision[Note]:
        if self.notes.get("loading") == "fails":
            raise RuntimeError("a fault in loaded")
        self.is_loaded = True
        return Decision()

    def write(self, waiter: Waiter, *notes: Note, **how: Any) -> Decision[Note]:
        decision = Decision(list(notes), **how)
        for name, text in notes:
            for other in self.waiting.pop(name, []):
                decision.reply(other, text)
                decision.cancel_timer((name,))
        decision.reply(waiter, len(self.notes))
        return decision

    def wait(self, waiter: Waiter, name: str, until_ms: int) -> Decision[Note]:
        self.waiting.setdefault(name, []).append(waiter)
        decision = Decision[Note]()
        decision.set_timer((name,), until_ms)
        return decision

    def on_timer(self, name: TimerName, now: Now) -> Decision[Note]:
        decision = Decision[Note]([(name[0], "timed out")])
        for waiter in self.waiting.pop(name[0], []):
            decision.reply(waiter, InvalidRequest("it did not come"))
        return decision


class World:
    def __init__(self, directory: Path, **settings: str) -> None:
        self.broker = InProcessBroker(directory, settings)
        self.broker.create(TOPIC)
        self.parts = self.broker.parts
        self.loop = self.parts.loop
        self.performed: list[Effect] = []
        self.perform: Callable[[Effect], None] = self.performed.append
        self.runtime = self.make()
        self.runtime.lead(self.partition)
        self.settle()

    def make(self) -> Runtime[Note, Notebook]:
        parts = self.parts
        return Runtime(
            TOPIC,
            RecordFormat(encode, decode),
            lambda _: Notebook(),
            lambda _, effect: self.perform(effect),
            parts.loop,
            parts.clocks,
            parts.threads,
            parts.counters,
            parts.partitions,
        )

    @property
    def partition(self) -> Any:
        return self.parts.partitions.get(TOPIC, 0)

    @property
    def shard(self) -> Any:
        return self.runtime.shard(0)

    def settle(self) -> None:
        """Until a shard that loads is loaded, or has failed to."""
        loading = self.shard._loading
        if loading is not None:
            self.loop.run_until_complete(asyncio.wait([loading], timeout=30))

    def write(self, *notes: Note, **how: Any) -> Response:
        response = self.shard.ask(lambda machine, waiter, now: machine.write(waiter, *notes, **how))
        assert isinstance(response, Response)
        return response

    def wait(self, name: str, for_ms: int = 60_000) -> Response:
        response = self.shard.ask(lambda machine, waiter, now: machine.wait(waiter, name, now.monotonic_ms + for_ms))
        assert isinstance(response, Response)
        return response

    def done(self, response: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(response, 30))

    @property
    def notes(self) -> dict[str, str]:
        return dict(self.shard.look(lambda machine: machine.notes))
