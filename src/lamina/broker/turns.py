"""Long work in turns of the loop, so that others are not held up. Must not know what the work is."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from lamina.clocks import Clocks

T = TypeVar("T")

_TURN_NS = 1_000_000
"""After so long the loop is left to others; a visit that rolls a log takes about as long."""


class Turns:
    """One long work; after every millisecond of it the others on the loop have their turn."""

    __slots__ = ("_clocks", "_ends_ns")

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self._ends_ns = clocks.monotonic_ns() + _TURN_NS

    @property
    def is_over(self) -> bool:
        """Whether others have to have their turn before more is done."""
        return self._clocks.monotonic_ns() >= self._ends_ns

    async def step(self) -> None:
        """A small part of the work is done."""
        if self.is_over:
            await asyncio.sleep(0)
            self._ends_ns = self._clocks.monotonic_ns() + _TURN_NS


async def in_turns(items: Iterable[T], clocks: Clocks) -> AsyncIterator[T]:
    """Each item of a long work."""
    turns = Turns(clocks)
    for item in items:
        yield item
        await turns.step()
