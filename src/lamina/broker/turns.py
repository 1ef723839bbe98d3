"""Long work in turns of the loop, so that others are not held up. Must not know what the work is."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from lamina.clocks import Clocks

T = TypeVar("T")

_TURN_NS = 1_000_000
"""After so long the loop is left to others; a visit that rolls a log takes about as long."""


async def in_turns(items: Iterable[T], clocks: Clocks) -> AsyncIterator[T]:
    """Each item; after every millisecond of work the others on the loop have their turn."""
    turn_ends_ns = clocks.monotonic_ns() + _TURN_NS
    for item in items:
        yield item
        if clocks.monotonic_ns() >= turn_ends_ns:
            await asyncio.sleep(0)
            turn_ends_ns = clocks.monotonic_ns() + _TURN_NS
