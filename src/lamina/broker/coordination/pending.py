"""What was asked of a machine and is not answered yet.

Owns who waits for which answer. Must not know what was asked, nor when an answer may go out.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from itertools import count
from time import perf_counter_ns
from typing import Any, TypeVar

from lamina.broker.waits import WAITS
from lamina.coordinators.decision import Reply, Waiter
from lamina.errors import KafkaError

T = TypeVar("T")

_numbers = count(1)


class Asked:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[Waiter, asyncio.Future[object]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def begin(self) -> "tuple[Waiter, asyncio.Future[object]]":
        """Somebody waits from now on, for a reply to this number."""
        waiter = next(_numbers)
        future = self._waiting[waiter] = self._loop.create_future()
        return waiter, future

    def withdraw(self, waiter: Waiter) -> None:
        """Whoever asked was told otherwise."""
        future = self._waiting.pop(waiter, None)
        if future is not None:
            future.cancel()

    def answer(self, replies: Iterable[Reply]) -> None:
        for waiter, answer in replies:
            future = self._waiting.pop(waiter, None)
            if future is None or future.done():
                continue
            if isinstance(answer, KafkaError):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    def refuse_all(self, reason: KafkaError) -> None:
        """Nobody will answer what was asked so far."""
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(reason)
                # Whoever asked may be told another reason already, and then does not look at this one.
                future.exception()


def then(asked: object | Awaitable[object], respond: Callable[[Any], T]) -> T | Awaitable[T]:
    """``respond`` to what was asked, now if it is there, else when it comes."""
    if isinstance(asked, asyncio.Future):
        return _then(asked, respond)
    return respond(asked)


async def _then(asked: "asyncio.Future[object]", respond: Callable[[Any], T]) -> T:
    """What waits for other members, or for a commit, is parked, not slow."""
    began_ns, waits = perf_counter_ns(), WAITS.get()
    try:
        answer = await asked
    finally:
        if waits is not None:
            waits.parked_ns += perf_counter_ns() - began_ns
    return respond(answer)
