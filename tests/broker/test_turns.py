"""Long work on the loop, and how often it gives way."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from lamina.broker.turns import in_turns
from tests.driven_clock import DrivenClock


def test_long_work_leaves_the_loop_to_others() -> None:
    """Each item takes as long as a turn may last."""
    clock = DrivenClock()
    clock.monotonic_ms = 0

    async def count_turns() -> int:
        turns = 0
        loop = asyncio.get_running_loop()
        done = False

        def turn() -> None:
            nonlocal turns
            turns += 1
            if not done:
                loop.call_soon(turn)

        loop.call_soon(turn)
        async for item in in_turns(range(50), clock.clocks):
            clock.monotonic_ms = item + 1
        done = True
        return turns

    assert asyncio.run(count_turns()) >= 50


def test_short_work_is_done_in_one_turn() -> None:
    clock = DrivenClock()
    clock.monotonic_ms = 7
    work = _all_of(in_turns(range(1000), clock.clocks))
    with pytest.raises(StopIteration) as done:
        work.send(None)
    assert done.value.value == list(range(1000))


async def _all_of(items: AsyncIterator[int]) -> list[int]:
    return [item async for item in items]
