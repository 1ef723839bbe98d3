"""The way from one machine to another: how long it takes, and whether anything comes through.

Owns one direction. What is sent over a link that is cut arrives when it is whole again, as TCP sends it again, if its
connection still lives by then. Must not know what is carried.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from random import Random

from tests.simulation.loop import Process, VirtualLoop

USUAL_MS = (0.1, 2.0)


class Link:
    def __init__(self, loop: VirtualLoop, rng: Random, process: Process) -> None:
        """``process`` is the network's: what is on its way arrives, whatever becomes of its sender."""
        self._loop = loop
        self._rng = rng
        self._process = process
        self._whole = asyncio.Event()
        self._whole.set()
        self._stalled: list[Pipe] = []
        self.is_rejecting = False
        """Whether a firewall refuses whoever connects; what is connected stays so."""
        self.delay_ms = self._usual_ms = USUAL_MS

    def place(self, usual_ms: tuple[float, float]) -> None:
        """How long it takes while nothing is wrong."""
        self.delay_ms = self._usual_ms = usual_ms

    @property
    def is_cut(self) -> bool:
        return not self._whole.is_set()

    def cut(self) -> None:
        self._whole.clear()

    def heal(self) -> None:
        self._whole.set()
        self.is_rejecting = False
        self.delay_ms = self._usual_ms
        stalled, self._stalled = self._stalled, []
        for pipe in stalled:
            pipe.pump()

    def stall(self, pipe: "Pipe") -> None:
        self._stalled.append(pipe)

    def delay_s(self) -> float:
        return self._rng.uniform(*self.delay_ms) / 1000

    def after_delay(self, callback: Callable[[], None]) -> None:
        self._loop.call_later(self.delay_s(), callback, context=self._process.context)

    async def cross(self) -> None:
        """Take the time that one message takes."""
        await asyncio.sleep(self.delay_s())
        await self._whole.wait()

    def kept(self, count: int) -> int:
        """How many of so many messages arrive although their sender went away."""
        return self._rng.randint(0, count)


class Pipe:
    """One direction of one connection: what is sent arrives once, in order, or not at all."""

    def __init__(self, link: Link, deliver: Callable[[bytes], None]) -> None:
        """``deliver`` is called by the network; empty bytes are the end of the stream."""
        self._link = link
        self._deliver = deliver
        self._queue: deque[bytes] = deque()
        self._is_moving = False
        self._is_ended = False

    def send(self, data: bytes) -> None:
        if not self._is_ended:
            self._queue.append(data)
            self.pump()

    def end(self) -> None:
        """Everything arrives, then the end."""
        self.send(b"")
        self._is_ended = True

    def give_up(self) -> None:
        """The sender is gone, or will not wait: of what is on its way some may still arrive, late as it may be."""
        if not self._is_ended:
            for _ in range(len(self._queue) - self._link.kept(len(self._queue))):
                self._queue.pop()
            self.end()

    def forget(self) -> None:
        """Nothing arrives any more, not even the end."""
        self._queue.clear()
        self._is_ended = True

    def pump(self) -> None:
        if self._queue and not self._is_moving:
            self._is_moving = True
            self._link.after_delay(self._arrive)

    def _arrive(self) -> None:
        self._is_moving = False
        if self._queue:
            if self._link.is_cut:
                self._link.stall(self)
            else:
                self._deliver(self._queue.popleft())
                self.pump()
