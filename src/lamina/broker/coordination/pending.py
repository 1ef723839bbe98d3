"""Requests to a machine that have no answer yet.

Owns who waits for which answer. Must not know what was asked, nor when an answer may go out.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable
from itertools import count
from typing import Any, TypeVar

from lamina.broker.waits import WAITS
from lamina.clocks import Clocks
from lamina.coordinators.decision import Reply, Waiter
from lamina.errors import KafkaError

T = TypeVar("T")

_numbers = count(1)


class Response:
    """What a machine answers to one request: ready in the turn that asked, nearly always, or to be awaited by one task.

    An answer that is an error is raised where it is taken.
    """

    __slots__ = ("_answer", "_clocks", "_future", "is_ready")

    def __init__(self, clocks: Clocks) -> None:
        self.is_ready = False
        self._clocks = clocks
        self._answer: object = None
        self._future: asyncio.Future[None] | None = None

    def set(self, answer: object) -> None:
        self._answer = answer
        self.is_ready = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def give_up(self, reason: KafkaError) -> None:
        """Answer with this error, unless an answer is there: nobody waits for the machine's own any more."""
        if not self.is_ready:
            self.set(reason)

    def then(self, respond: Callable[[Any], T | Awaitable[T]]) -> T | Awaitable[T]:
        """``respond`` to the answer: at once if it is ready, so that a request needs no task, else when it comes."""
        return respond(self._take()) if self.is_ready else self._respond(respond)

    async def _respond(self, respond: Callable[[Any], T | Awaitable[T]]) -> T:
        response = respond(await self)
        return await response if isinstance(response, Awaitable) else response

    def __await__(self) -> Generator[Any, None, Any]:
        if not self.is_ready:
            # What waits for other members, or for a commit, is parked, not slow.
            began_ns, waits = self._clocks.monotonic_ns(), WAITS.get()
            self._future = asyncio.get_running_loop().create_future()
            try:
                yield from self._future
            finally:
                if waits is not None:
                    waits.parked_ns += self._clocks.monotonic_ns() - began_ns
        return self._take()

    def _take(self) -> object:
        if isinstance(self._answer, KafkaError):
            raise self._answer
        return self._answer


class Pending:
    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self._responses: dict[Waiter, Response] = {}

    def __len__(self) -> int:
        return len(self._responses)

    def begin(self) -> tuple[Waiter, Response]:
        """A request that waits for a reply to this number."""
        waiter, response = next(_numbers), Response(self._clocks)
        self._responses[waiter] = response
        return waiter, response

    def withdraw(self, waiter: Waiter) -> None:
        """The request was refused instead."""
        self._responses.pop(waiter, None)

    def answer(self, replies: Iterable[Reply]) -> None:
        for waiter, answer in replies:
            response = self._responses.pop(waiter, None)
            if response is not None:
                response.set(answer)

    def refuse_all(self, reason: KafkaError) -> None:
        """Answer all requests with this error."""
        responses, self._responses = self._responses, {}
        for response in responses.values():
            response.set(reason)
