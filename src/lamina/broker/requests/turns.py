"""Long work of a handler in turns of the loop, so that others are not held up. Must not know what the work is."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")

_ITEMS_AT_A_TIME = 64


async def in_turns(items: Iterable[T]) -> AsyncIterator[T]:
    """Each item, with a pause for others after every few."""
    for number, item in enumerate(items, 1):
        yield item
        if number % _ITEMS_AT_A_TIME == 0:
            await asyncio.sleep(0)
